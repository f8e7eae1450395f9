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
  __attribute__((export_name("mortise:policy/" interface "@0.1.0#" function)))

typedef struct { const char *at; uint32_t length; } text;
typedef struct { const uint32_t *at; uint32_t length; } u32s;
typedef struct { const double *at; uint32_t length; } f64s;
typedef struct { const uint8_t *at; uint32_t length; } u8s;
typedef struct { const text *at; uint32_t length; } texts;
/* Pairs of symbols. */
typedef struct { const struct { uint32_t key, value; } *at; uint32_t length; } labels;

/* No symbol; also: never. */
#define NONE UINT32_MAX
#define TEXT(literal) ((text){literal, sizeof(literal) - 1})
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* -- wit/types.wit -------------------------------------------------------------------------------------------- */

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
} context;

enum { FLOATS, INTS, SYMS, BYTES };

typedef struct {
  text name;
  uint8_t type;
  union { f64s floats; u32s ints; u32s syms; u8s bytes; } values;
} extra_column;

typedef struct { const extra_column *at; uint32_t length; } extra_columns;

/* -- wit/lifecycle.wit ---------------------------------------------------------------------------------------- */

typedef struct {
  text name, version, summary, config_schema;
  bool deterministic;
} descriptor;

typedef struct { text path, message; } config_issue;

typedef struct {
  bool is_error;
  struct { const config_issue *at; uint32_t length; } issues;
} configured;

/* -- wit/rank.wit --------------------------------------------------------------------------------------------- */

typedef struct {
  texts symbols;
  u32s instance_type, family, zone, arch;
  u8s capacity_type;
  f64s price, on_demand_price;
  u32s cpu_milli, memory_mib, gpus, max_pods, reservation_slots, ice_count, ice_age;
  f64s interruption_rate;
  u32s in_use;
  f64s prior;
  extra_columns extra;
} offerings;

typedef struct {
  uint32_t key;
  uint8_t operator;
  u32s values;
  uint32_t min_values;
} requirement;

typedef struct {
  uint32_t nodepool, weight;
  u32s candidates; /* none means all rows */
  struct { const requirement *at; uint32_t length; } requirements;
  struct {
    uint32_t count, cpu_milli, memory_mib, gpus;
    int32_t max_priority;
    uint32_t do_not_disrupt, replicated, expected_runtime;
  } pods;
  labels labels;
} claim;

typedef struct {
  context context;
  offerings table;
  struct { const claim *at; uint32_t length; } claims;
} rank_arguments;

typedef struct {
  f64s scores;
  u32s excluded, excluded_reason;
  texts reasons;
  bool has_note;
  text note;
} ranking;

typedef struct {
  bool is_error;
  struct { const ranking *at; uint32_t length; } rankings;
} rank_result;

/* -- wit/consolidation.wit ------------------------------------------------------------------------------------ */

typedef struct {
  texts symbols;
  u32s name, nodepool, instance_type, zone;
  u8s capacity_type;
  f64s price;
  u32s age, time_to_expiry, pods, blocked_pods;
  f64s disruption_cost;
  u32s cpu_milli, cpu_requested_milli, memory_mib, memory_requested_mib;
  extra_columns extra;
} nodes;

enum { MOVE_EMPTY, MOVE_DELETE, MOVE_REPLACE, MOVE_DRIFT, MOVE_EXPIRE };

typedef struct {
  uint8_t kind;
  u32s remove;
  double cost_before, cost_after;
  uint32_t pods_moved, singletons_moved;
  int32_t max_priority;
  uint32_t new_nodes, replacement_type;
  bool replacement_spot;
  uint32_t recent_hour, recent_day;
  labels labels;
} move;

typedef struct {
  context context;
  nodes nodes;
  struct { const move *at; uint32_t length; } moves; /* of judge alone */
} consolidation_arguments;

enum { APPROVE, REJECT, HOLD };

typedef struct {
  uint8_t decision;
  double score;
  text reason;
  uint32_t retry_after;
} verdict;

typedef struct { bool is_error; f64s keys; } order_result;

typedef struct {
  bool is_error;
  struct { const verdict *at; uint32_t length; } verdicts;
} judge_result;

/* -- wit/budgets.wit ------------------------------------------------------------------------------------------ */

enum { UNDERUTILIZED, EMPTY, DRIFTED, REASONS };

typedef struct {
  text nodes;
  uint32_t resolved;
  bool active;
  uint32_t next_change;
  uint8_t reasons; /* bit 1 << reason */
} declared_budget;

typedef struct {
  text name;
  struct { const struct { text key, value; } *at; uint32_t length; } labels;
  uint32_t total, not_ready, deleting;
  u32s disrupting; /* by reason */
  uint32_t pending_pods;
  struct { const declared_budget *at; uint32_t length; } declared;
  uint32_t recent_hour, recent_day;
} pool;

typedef struct {
  uint32_t pool;
  uint8_t reason;
  uint32_t allowed;
  text why;
} allowance;

typedef struct {
  bool is_error;
  struct { const allowance *at; uint32_t length; } items;
  uint32_t valid_for;
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
