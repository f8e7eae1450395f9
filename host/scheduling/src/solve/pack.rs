//! Batches of pods to new nodes: which to open, and with what on them.
//!
//! In go batches whose domains are chosen; out come open claims, each with the offerings that it may still become, and
//! the batches that found none. [`cost_packing`] plans all nodes by cost before it opens any: pods that are equal to
//! it become items, a planner makes several plans of them, and the best is kept. [`first_fit`] is Karpenter's order.
//! Neither chooses a domain or looks at nodes that exist.

mod best_plan;
mod column_generation;
mod cost_packing;
mod fill;
mod first_fit;
mod host_terms;
mod item_columns;
mod items;
mod linear_program;
mod merge_nodes;
mod open_sets;
mod plan;
mod plan_context;
mod planned_node;
