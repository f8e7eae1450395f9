// Ranks offerings: arm64 unless it is dearer by more than `premium`. The interface is in wit/rank.wit.

import { lifecycleOf } from "./lifecycle.js";

let premium = 0.2;

export const lifecycle = lifecycleOf({
  name: "POLICY_NAME",
  summary: "arm64 unless it is dearer by more than the premium",
  key: "premium",
  fallback: 0.2,
  least: 0,
  most: 10,
  set: (value) => (premium = value),
});

export const rank = {
  rank(context, table, usage, workloads, claims) {
    // Effective USD an hour of each row; the lowest is bought. A cost hangs on the row alone, so it is computed once,
    // whatever the number of claims; words are looked up once, for the columns hold their numbers.
    const costs = Float64Array.from(table.prior);
    const arm64 = table.symbols.indexOf("arm64");
    for (let row = 0; row < costs.length; row++) {
      if (table.arch[row] === arm64) {
        costs[row] /= 1 + premium;
      }
    }
    const items = claims.map(({ candidates }) => ({
      // No candidates means all rows.
      scores: candidates.length === 0 ? costs : Float64Array.from(candidates, (row) => costs[row]),
      excluded: [],
      excludedReason: [],
      reasons: [],
      note: undefined,
      extra: [],
    }));
    return { items, memory: undefined, extra: [] };
  },
};
