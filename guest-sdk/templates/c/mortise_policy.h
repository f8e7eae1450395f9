/* The interface of wit/ as a C compiler for wasm32 lays it out; no C library is needed.
 *
 * A list is a pointer and a length, an optional value a flag before it, a result a flag (0 is good) before what
 * it holds. Memory of a call is never given back: every round runs in a fresh instance. */

#ifndef MORTISE_POLICY_H
#define MORTISE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT(interface, function) \
  __attribute__((export_name("mortise:policy/" interface "@0.2.0#" function)))

typedef struct { const char *at; uint32_t length; } text;
typedef struct { const uint32_t *at; uint32_t length; } u32s;
typedef struct { const double *at; uint32_t length; } f64s;
typedef struct { const uint8_t *at; uint32_t length; } u8s;
typedef struct { const text *at; uint32_t length; } texts;
typedef struct { const int32_t *at; uint32_t length; } s32s;
/* Pairs of symbols. */
typedef struct { const struct { uint32_t key, value; } *at; uint32_t length; } labels;
/* Labels of each row. */
typedef struct { const labels *at; uint32_t length; } labels_of_rows;

/* No symbol; also: never. */
#define NONE UINT32_MAX
#define TEXT(literal) ((text){literal, sizeof(literal) - 1})
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* -- wit/types.wit -------------------------------------------------------------------------------------------- */

enum { FLOAT, INT, TEXT_VALUE, FLAG };

/* What this version of the interface has no name for; leave it out of answers, and do not look at it. */
typedef struct {
  text name;
  uint8_t type;
  union { double number; int64_t integer; text text; bool flag; } value;
} field;

typedef struct { const field *at; uint32_t length; } fields;

typedef struct {
  text zone;
  int32_t year;
  uint8_t month, day, weekday, hour, minute;
  int32_t utc_offset_minutes;
  texts calendars;
} civil;

typedef struct {
  uint64_t now;
  struct { const civil *at; uint32_t length; } civil;
  text cluster, decision_id;
  uint64_t seed;
  u8s memory;
  fields extra;
} context;

/* What the next call is to be given as its memory; without `is_some` it is left as it is. */
typedef struct {
  bool is_some;
  u8s bytes;
} memory;

enum { FLOATS, INTS, SYMS, BYTES };

typedef struct {
  text name;
  uint8_t type;
  union { f64s floats; u32s ints; u32s syms; u8s bytes; } values;
} extra_column;

typedef struct { const extra_column *at; uint32_t length; } extra_columns;

/* Pods by owner: without rows unless `needs` of the descriptor name `workloads`. */
typedef struct {
  u32s of, namespace, owner_kind, owner_name, priority_class;
  s32s priority;
  labels_of_rows labels;
  u32s pods, do_not_disrupt, cpu_milli, memory_mib, gpus, replicas, disruptions_allowed, oldest_wait;
  extra_columns extra;
} workloads;

/* -- wit/lifecycle.wit ---------------------------------------------------------------------------------------- */

typedef struct {
  text name, version, summary, config_schema;
  bool deterministic;
  texts needs;
  text sdk;
  fields extra;
} descriptor;

typedef struct { text path, message; } config_issue;

typedef struct {
  bool is_error;
  struct { const config_issue *at; uint32_t length; } issues;
} configured;

/* -- wit/rank.wit --------------------------------------------------------------------------------------------- */

typedef struct {
  texts symbols;
  u32s instance_type, family, generation, cpu_manufacturer, zone, arch;
  u8s capacity_type;
  f64s price, on_demand_price;
  u32s cpu_milli, memory_mib, gpus, max_pods, reservation_slots, ice_count, ice_age;
  f64s interruption_rate, prior;
  extra_columns extra;
} offerings;

/* Nodes that there are. */
typedef struct {
  u32s nodepool, instance_type, family, zone;
  u8s capacity_type;
  u32s nodes, launching;
  f64s price;
  extra_columns extra;
} usage;

enum { PACKING, LAUNCH, APPRAISAL, OTHER_STAGE };

typedef struct {
  uint32_t key;
  uint8_t operator;
  u32s values;
  uint32_t min_values;
  fields extra;
} requirement;

typedef struct {
  uint32_t nodepool, weight;
  uint8_t stage;
  u32s candidates; /* none means all rows */
  struct { const requirement *at; uint32_t length; } requirements;
  struct {
    uint32_t count, cpu_milli, memory_mib, gpus;
    int32_t max_priority;
    uint32_t do_not_disrupt, replicated, oldest_wait;
    fields extra;
  } pods;
  labels labels, nodepool_labels;
  struct { const struct { uint32_t zone, free; } *at; uint32_t length; } free_addresses;
  fields extra;
} claim;

typedef struct {
  context context;
  offerings table;
  usage usage;
  workloads workloads;
  struct { const claim *at; uint32_t length; } claims;
} rank_arguments;

typedef struct {
  f64s scores;
  u32s excluded, excluded_reason;
  texts reasons;
  bool has_note;
  text note;
  fields extra;
} ranking;

typedef struct {
  bool is_error;
  struct { const ranking *at; uint32_t length; } rankings;
  memory memory;
  fields extra;
} rank_result;

/* -- wit/consolidation.wit ------------------------------------------------------------------------------------ */

typedef struct {
  texts symbols;
  u32s name, nodepool, instance_type, zone;
  u8s capacity_type;
  f64s price, effective_price;
  u32s consolidation_policy, age, time_to_expiry, last_pod_event, drift_reason, pods, blocked_pods;
  f64s disruption_cost;
  u32s cpu_milli, cpu_requested_milli, memory_mib, memory_requested_mib, gpus, gpus_requested;
  labels_of_rows labels; /* without entries unless `needs` name `node-labels` */
  extra_columns extra;
} nodes;

/* A NodePool of the candidates, with all its nodes. */
typedef struct {
  uint32_t name;
  labels labels;
  uint32_t nodes;
  double price, effective_price, disruption_cost;
  uint32_t recent_hour, recent_day;
  fields extra;
} node_pool;

enum { MOVE_EMPTY, MOVE_DELETE, MOVE_REPLACE, MOVE_DRIFT, MOVE_STATIC_DRIFT, MOVE_EXPIRE, MOVE_OTHER };

typedef struct {
  uint8_t kind;
  u32s remove;
  double cost_before, cost_after, effective_before, effective_after;
  uint32_t pods_moved, singletons_moved;
  int32_t max_priority;
  uint32_t new_nodes, replacement_type, replacement_zone;
  uint8_t replacement_capacity_type;
  labels labels;
  fields extra;
} move;

typedef struct {
  context context;
  nodes nodes;
  struct { const node_pool *at; uint32_t length; } pools;
  workloads workloads;
  struct { const move *at; uint32_t length; } moves; /* of judge alone */
} consolidation_arguments;

enum { APPROVE, REJECT, HOLD };

typedef struct {
  uint8_t decision;
  double score;
  text reason;
  uint32_t retry_after;
  fields extra;
} verdict;

typedef struct { bool is_error; f64s keys; } order_result;

typedef struct {
  bool is_error;
  struct { const verdict *at; uint32_t length; } verdicts;
  memory memory;
  fields extra;
} judge_result;

/* -- wit/budgets.wit ------------------------------------------------------------------------------------------ */

/* Those that a policy is asked about come first; it may speak of the fourth too. */
enum { UNDERUTILIZED, EMPTY, DRIFTED, JUDGED, UNHEALTHY = JUDGED, OTHER_REASON };

typedef struct {
  text nodes;
  uint32_t resolved;
  bool active;
  uint32_t next_change;
  uint8_t reasons; /* bit 1 << reason */
  fields extra;
} declared_budget;

typedef struct {
  uint8_t reason;
  uint32_t disrupting, recent_hour, recent_day, failed_day;
  fields extra;
} activity;

typedef struct {
  text name;
  struct { const struct { text key, value; } *at; uint32_t length; } labels;
  uint32_t total, not_ready, deleting, drifted;
  text drift_target;
  uint32_t renewed, target_age;
  double price;
  struct { const activity *at; uint32_t length; } activity; /* one for each reason */
  uint32_t pending_pods;
  struct { const declared_budget *at; uint32_t length; } declared;
  fields extra;
} pool;

typedef struct {
  uint32_t pool;
  uint8_t reason;
  uint32_t allowed;
  text why;
  fields extra;
} allowance;

typedef struct {
  bool is_error;
  struct { const allowance *at; uint32_t length; } items;
  uint32_t valid_for;
  memory memory;
  fields extra;
} allow_result;

/* -- Memory --------------------------------------------------------------------------------------------------- */

extern uint8_t __heap_base;
static uintptr_t heap_top;

/* Memory until the end of the call. */
static void *allocate(size_t bytes) {
  uintptr_t start = heap_top ? heap_top : (uintptr_t)&__heap_base;
  start = (start + 7) & ~(uintptr_t)7;
  heap_top = start + bytes;
  size_t have = __builtin_wasm_memory_size(0) << 16;
  if (heap_top > have && __builtin_wasm_memory_grow(0, (heap_top - have + 0xffff) >> 16) == (size_t)-1) {
    __builtin_trap();
  }
  return (void *)start;
}

/* By which the host hands over arguments. */
__attribute__((export_name("cabi_realloc"))) void *
cabi_realloc(void *old, size_t old_bytes, size_t align, size_t bytes) {
  (void)align;
  char *grown = allocate(bytes);
  for (size_t i = 0; i < old_bytes && i < bytes; i++) {
    grown[i] = ((const char *)old)[i];
  }
  return grown;
}

/* -- Words ---------------------------------------------------------------------------------------------------- */

static inline bool same(text left, text right) {
  if (left.length != right.length) {
    return false;
  }
  for (uint32_t i = 0; i < left.length; i++) {
    if (left.at[i] != right.at[i]) {
      return false;
    }
  }
  return true;
}

/* The symbol of a word, so that rows are compared by number; one that no symbol equals without it. */
static inline uint32_t symbol_of(texts symbols, text word) {
  for (uint32_t i = 0; i < symbols.length; i++) {
    if (same(symbols.at[i], word)) {
      return i;
    }
  }
  return NONE - 1;
}

#endif
