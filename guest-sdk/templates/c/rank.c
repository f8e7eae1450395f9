/* Ranks offerings: arm64 unless it is dearer by more than a fifth. */

#include "mortise_policy.h"

#define SUMMARY "arm64 unless it is dearer by more than a fifth"
static const double PREMIUM = 0.2;

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

/* Effective USD an hour; the lowest is bought. */
EXPORT("rank", "rank") rank_result *rank(const rank_arguments *asked) {
  static rank_result result;
  const offerings *table = &asked->table;
  uint32_t rows = table->price.length;
  uint32_t arm64 = symbol_of(table->symbols, TEXT("arm64"));
  double *costs = allocate(rows * sizeof(double));
  for (uint32_t row = 0; row < rows; row++) {
    double prior = table->prior.at[row];
    costs[row] = table->arch.at[row] == arm64 ? prior / (1.0 + PREMIUM) : prior;
  }
  ranking *rankings = allocate(asked->claims.length * sizeof(ranking));
  for (uint32_t i = 0; i < asked->claims.length; i++) {
    u32s candidates = asked->claims.at[i].candidates;
    f64s scores = {costs, rows};
    if (candidates.length > 0) {
      double *some = allocate(candidates.length * sizeof(double));
      for (uint32_t j = 0; j < candidates.length; j++) {
        some[j] = costs[candidates.at[j]];
      }
      scores = (f64s){some, candidates.length};
    }
    rankings[i] = (ranking){.scores = scores};
  }
  result.rankings.at = rankings;
  result.rankings.length = asked->claims.length;
  return &result;
}
