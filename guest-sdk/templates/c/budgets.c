/* Says how many nodes may be disrupted: none in working hours, else what is declared. */

#include "mortise_policy.h"

#define SUMMARY "nothing is disrupted in working hours"

EXPORT("lifecycle", "describe") descriptor *describe(void) {
  static descriptor me = {
      .name = {"POLICY_NAME", sizeof("POLICY_NAME") - 1},
      .version = {"0.1.0", 5},
      .summary = {SUMMARY, sizeof(SUMMARY) - 1},
      .deterministic = true,
  };
  return &me;
}

/* No settings: whatever data.config holds is refused, so that nobody believes in it. */
EXPORT("lifecycle", "validate") configured *validate(const char *config, uint32_t length) {
  static config_issue issue = {{"", 0}, {"takes no settings", 17}};
  static configured refused = {.is_error = true, .issues = {&issue, 1}};
  static configured accepted;
  (void)config;
  return length == 0 ? &accepted : &refused;
}

EXPORT("lifecycle", "configure") configured *configure(const char *config, uint32_t length) {
  return validate(config, length);
}

static uint32_t declared(const pool *of, uint32_t reason) {
  uint32_t least = of->total;
  for (uint32_t i = 0; i < of->declared.length; i++) {
    declared_budget budget = of->declared.at[i];
    if (budget.active && (budget.reasons >> reason & 1) && budget.resolved < least) {
      least = budget.resolved;
    }
  }
  return least;
}

/* The arguments are few enough that each comes by itself: the context, then the pools. */
EXPORT("budgets", "allow") allow_result *allow(
    uint64_t now, const civil *civil, uint32_t civil_length, const char *cluster, uint32_t cluster_length,
    const char *decision_id, uint32_t decision_id_length, uint64_t seed, const uint8_t *memory,
    uint32_t memory_length, const field *extra, uint32_t extra_length, const pool *pools, uint32_t count) {
  static allow_result result;
  (void)now, (void)cluster, (void)cluster_length, (void)decision_id, (void)decision_id_length, (void)seed;
  (void)memory, (void)memory_length, (void)extra, (void)extra_length;
  bool is_work = civil_length > 0 && civil->weekday < 5 && civil->hour >= 8 && civil->hour < 18;
  allowance *items = allocate(count * JUDGED * sizeof(allowance));
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t reason = 0; reason < JUDGED; reason++) {
      items[i * JUDGED + reason] = (allowance){
          .pool = i,
          .reason = reason,
          .allowed = is_work ? 0 : declared(&pools[i], reason),
          .why = is_work ? TEXT("it is working time") : TEXT("declared budgets"),
      };
    }
  }
  result.items.at = items;
  result.items.length = count * JUDGED;
  return &result;
}
