/* Judges consolidation: a move must save at least a cent an hour. */

#include "mortise_policy.h"

#define SUMMARY "moves must be worth it"
static const double MIN_SAVINGS = 0.01;

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

/* In which order to try nodes, lower first: what costs little disruption for its price. */
EXPORT("consolidation", "order") order_result *order(const consolidation_arguments *asked) {
  static order_result result;
  const nodes *table = &asked->nodes;
  uint32_t rows = table->price.length;
  double *keys = allocate(rows * sizeof(double));
  for (uint32_t row = 0; row < rows; row++) {
    double price = table->effective_price.at[row], disruption = table->disruption_cost.at[row];
    keys[row] = price > 0 ? (disruption > 0 ? disruption / price : 0) : 1e300;
  }
  result.keys = (f64s){keys, rows};
  return &result;
}

static bool is_only_when_empty(const nodes *table, u32s removed) {
  uint32_t when_empty = symbol_of(table->symbols, TEXT("WhenEmpty"));
  for (uint32_t i = 0; i < removed.length; i++) {
    if (table->consolidation_policy.at[removed.at[i]] == when_empty) {
      return true;
    }
  }
  return false;
}

static verdict judged(const nodes *table, const move *it) {
  double savings = it->effective_before - it->effective_after, disruption = 0;
  for (uint32_t i = 0; i < it->remove.length; i++) {
    disruption += table->disruption_cost.at[it->remove.at[i]];
  }
  if (it->kind == MOVE_EXPIRE) {
    return (verdict){.decision = REJECT, .reason = TEXT("it has not expired")};
  }
  bool is_for_savings = it->kind == MOVE_DELETE || it->kind == MOVE_REPLACE;
  if (is_for_savings && is_only_when_empty(table, it->remove)) {
    return (verdict){.decision = REJECT, .reason = TEXT("the pool consolidates only empty nodes")};
  }
  if (is_for_savings && savings < MIN_SAVINGS) {
    return (verdict){.decision = REJECT, .reason = TEXT("saves too little")};
  }
  double score = disruption > 0 ? savings / disruption : savings;
  return (verdict){.decision = APPROVE, .score = score, .reason = TEXT("is worth it")};
}

EXPORT("consolidation", "judge") judge_result *judge(const consolidation_arguments *asked) {
  static judge_result result;
  uint32_t count = asked->moves.length;
  verdict *verdicts = allocate(count * sizeof(verdict));
  for (uint32_t i = 0; i < count; i++) {
    verdicts[i] = judged(&asked->nodes, &asked->moves.at[i]);
  }
  result.verdicts.at = verdicts;
  result.verdicts.length = count;
  return &result;
}
