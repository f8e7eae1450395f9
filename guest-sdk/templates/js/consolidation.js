// Judges consolidation: a move must save at least `minSavings` USD an hour. The interface is in wit/consolidation.wit.

import { lifecycleOf } from "./lifecycle.js";

let minSavings = 0.01;

export const lifecycle = lifecycleOf({
  name: "POLICY_NAME",
  summary: "moves must be worth it",
  key: "minSavings",
  fallback: 0.01,
  least: 0,
  most: 1000,
  set: (value) => (minSavings = value),
});

const reject = (reason) => ({ decision: "reject", score: 0, reason, retryAfter: 0, extra: [] });

function verdict(nodes, move) {
  if (move.kind === "expire") {
    return reject("it has not expired");
  }
  const savings = move.effectiveBefore - move.effectiveAfter;
  const rows = Array.from(move.remove);
  const disruption = rows.reduce((sum, row) => sum + nodes.disruptionCost[row], 0);
  const isForSavings = move.kind === "delete" || move.kind === "replace";
  const policyOf = (row) => nodes.symbols[nodes.consolidationPolicy[row]];
  if (isForSavings && rows.some((row) => policyOf(row) === "WhenEmpty")) {
    return reject("the pool consolidates only empty nodes");
  }
  if (isForSavings && savings < minSavings) {
    return reject("saves too little");
  }
  const score = disruption > 0 ? savings / disruption : savings;
  return { decision: "approve", score, reason: "is worth it", retryAfter: 0, extra: [] };
}

export const consolidation = {
  /** Lower first: what costs little disruption for its price. */
  order(context, nodes, pools, workloads) {
    return Float64Array.from(nodes.effectivePrice, (price, row) =>
      price > 0 ? Math.max(0, nodes.disruptionCost[row] / price) : Number.MAX_VALUE,
    );
  },
  judge(context, nodes, pools, workloads, moves) {
    const items = moves.map((move) => verdict(nodes, move));
    return { items, memory: undefined, extra: [] };
  },
};
