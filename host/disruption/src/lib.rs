//! Which nodes to take away, when, and why: candidates, methods, budgets, commands.
//!
//! Answers to Karpenter's `pkg/controllers/disruption`. Pure: the clock, the options and the limits are
//! arguments, and nothing here may talk to an API, to a cloud or to a policy engine. The judgement of
//! policies comes in through the traits of [`hooks`]; native checks always follow it.

pub mod hooks;
