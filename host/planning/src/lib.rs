//! What is planned on the model of a cluster, before a solve and after it.
//!
//! Before: which problem a pass has ([`provisioning`]), with the room of CapacityBuffers ([`capacity_buffer`]), the
//! pods that are believed to come ([`coming`]) and the spread that the scheduler gives to pods without one
//! (`default_spread`, as [`scheduler_config`] has it). After: which nodes are bought for pods that are there
//! ([`coming::gather()`]), which of equal pods goes where ([`queue_order`]), which nodes the scheduler is about to bind
//! pods to ([`places`]), which pods are told their place and when nodes open ([`pod_nomination`]). Nothing here may
//! change the model, read a clock or talk to an API: all are functions of a snapshot, a solution and the time.

pub mod capacity_buffer;
pub mod coming;
mod default_spread;
pub mod places;
pub mod pod_nomination;
pub mod provisioning;
pub mod queue_order;
pub mod scheduler_config;
