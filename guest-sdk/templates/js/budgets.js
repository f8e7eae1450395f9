// Says how many nodes may be disrupted: none in working hours, else what is declared. The interface is in wit/budgets.wit.

import { lifecycleOf } from "./lifecycle.js";

let endOfWork = 18;

export const lifecycle = lifecycleOf({
  name: "POLICY_NAME",
  summary: "nothing is disrupted in working hours",
  key: "to",
  fallback: 18,
  least: 0,
  most: 24,
  set: (value) => (endOfWork = value),
});

function declared(pool, reason) {
  return pool.declared
    .filter((budget) => budget.active && budget.reasons[reason])
    .reduce((least, { resolved }) => Math.min(least, resolved), pool.total);
}

export const budgets = {
  allow(context, pools) {
    const { weekday, hour } = context.civil[0];
    const isWork = weekday < 5 && hour >= 8 && hour < endOfWork;
    const items = pools.flatMap((pool, index) =>
      ["underutilized", "empty", "drifted"].map((reason) => ({
        pool: index,
        reason,
        allowed: isWork ? 0 : declared(pool, reason),
        why: isWork ? "it is working time" : "declared budgets",
        extra: [],
      })),
    );
    return { items, validFor: 0, memory: undefined, extra: [] };
  },
};
