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

/** Effective USD an hour of a row of the table; the lowest is bought. */
function cost(table, row) {
  const arch = table.symbols[table.arch[row]];
  return arch === "arm64" ? table.prior[row] / (1 + premium) : table.prior[row];
}

export const rank = {
  rank(context, table, claims) {
    // A cost hangs on the row alone: once for each, whatever the number of claims.
    const costs = new Float64Array(table.price.length);
    for (let row = 0; row < costs.length; row++) {
      costs[row] = cost(table, row);
    }
    return claims.map(({ candidates }) => ({
      // No candidates means all rows.
      scores: candidates.length === 0 ? costs : Float64Array.from(candidates, (row) => costs[row]),
      excluded: [],
      excludedReason: [],
      reasons: [],
      note: undefined,
    }));
  },
};
