//! From a policy to the exports of a component.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings::exports::mortise::policy::{budgets, consolidation, lifecycle, rank};
use crate::budgets::BudgetPolicy;
use crate::config::Settings;
use crate::consolidation::{ConsolidationCall, ConsolidationPolicy};
use crate::policy::{Context, Need, Policy, PolicyError};
use crate::rank::{RankCall, RankPolicy};
use crate::usage::UsageView;
use crate::workloads::{Workloads, WorkloadsView};

/// What a component says it was built with.
const SDK: &str = concat!("guest-sdk ", env!("CARGO_PKG_VERSION"));

/// Exports a policy as a component.
///
/// The word before the type picks the world: `rank`, `consolidation`, `budgets`, or `full` for a type
/// that implements all three traits. Natively the macro only checks that
/// the type implements them.
///
/// ```
/// # use guest_sdk::{Allowed, BudgetPolicy, Context, Policy, Pool, Reason, Settings};
/// struct NightShift;
///
/// impl Policy for NightShift {
///     const NAME: &'static str = "night-shift";
///     const SUMMARY: &'static str = "no disruption by day";
///     fn configure(_: &mut Settings) -> Self {
///         Self
///     }
/// }
///
/// impl BudgetPolicy for NightShift {
///     fn allowed(&self, pool: &Pool, reason: Reason, context: &Context) -> Allowed {
///         match context.civil_in("UTC").map(|civil| civil.hour) {
///             Some(6..=20) => Allowed { nodes: 0, why: "it is day".into() },
///             _ => Allowed { nodes: pool.declared_allowed(reason), why: "it is night".into() },
///         }
///     }
/// }
///
/// guest_sdk::export_policy!(budgets: NightShift);
/// ```
#[macro_export]
macro_rules! export_policy {
    (rank: $policy:ty) => {
        $crate::export_policy!(@ RANK, $policy, rank);
    };
    (consolidation: $policy:ty) => {
        $crate::export_policy!(@ CONSOLIDATION, $policy, consolidation);
    };
    (budgets: $policy:ty) => {
        $crate::export_policy!(@ BUDGETS, $policy, budgets);
    };
    (full: $policy:ty) => {
        $crate::export_policy!(@ FULL, $policy, rank, consolidation, budgets);
    };
    (@ $world:ident, $policy:ty, $($hook:ident),+) => {
        // Natively the names of the exports are no symbols a linker takes; only the traits are checked.
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            $($crate::export_policy!(@ check $policy, $hook);)+
        };
        #[cfg(target_family = "wasm")]
        const _: () = {
            type Exported = $crate::__private::Exported<$policy>;
            $crate::export_policy!(@ export Exported, lifecycle);
            $($crate::export_policy!(@ export Exported, $hook);)+

            // What `wasm-tools component new` reads to know which world this is.
            #[unsafe(link_section = "component-type:mortise-policy")]
            #[used]
            static WORLD: [u8; $crate::__private::worlds::$world.len()] =
                $crate::__private::worlds::section($crate::__private::worlds::$world);
        };
    };
    (@ check $policy:ty, $hook:ident) => {
        const _: fn() = || {
            fn is_a_policy<T: $crate::__private::types::exports::mortise::policy::$hook::Guest>() {}
            is_a_policy::<$crate::__private::Exported<$policy>>();
        };
    };
    (@ export $exported:ident, lifecycle) => {
        $crate::__export_mortise_policy_lifecycle_0_2_0_cabi!($exported with_types_in
            $crate::__private::types::exports::mortise::policy::lifecycle);
    };
    (@ export $exported:ident, rank) => {
        $crate::__export_mortise_policy_rank_0_2_0_cabi!($exported with_types_in
            $crate::__private::types::exports::mortise::policy::rank);
    };
    (@ export $exported:ident, consolidation) => {
        $crate::__export_mortise_policy_consolidation_0_2_0_cabi!($exported with_types_in
            $crate::__private::types::exports::mortise::policy::consolidation);
    };
    (@ export $exported:ident, budgets) => {
        $crate::__export_mortise_policy_budgets_0_2_0_cabi!($exported with_types_in
            $crate::__private::types::exports::mortise::policy::budgets);
    };
}

thread_local! {
    // A component holds one policy and one instance of it, so one slot does.
    static CONFIGURED: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Implements the exports for a policy; only [`export_policy!`] names it.
#[derive(Debug)]
pub struct Exported<P>(PhantomData<P>);

impl<P: Policy> Exported<P> {
    fn with<R>(call: impl FnOnce(&P) -> Result<R, PolicyError>) -> Result<R, PolicyError> {
        CONFIGURED.with_borrow(|slot| {
            match slot.as_ref().and_then(|policy| policy.downcast_ref::<P>()) {
                Some(policy) => call(policy),
                None => Err(PolicyError::permanent("called before it was configured")),
            }
        })
    }
}

impl<P: Policy> lifecycle::Guest for Exported<P> {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            name: P::NAME.to_owned(),
            version: P::VERSION.to_owned(),
            summary: P::SUMMARY.to_owned(),
            config_schema: P::CONFIG_SCHEMA.to_owned(),
            deterministic: true,
            needs: P::NEEDS.iter().map(|it| word(*it)).collect(),
            sdk: SDK.to_owned(),
            extra: Vec::new(),
        }
    }

    fn validate(
        config: String,
    ) -> Result<Vec<lifecycle::ConfigIssue>, Vec<lifecycle::ConfigIssue>> {
        Settings::read::<P>(&config).map(|(_, warnings)| warnings)
    }

    fn configure(config: String) -> Result<(), Vec<lifecycle::ConfigIssue>> {
        let (policy, _) = Settings::read::<P>(&config)?;
        CONFIGURED.set(Some(Box::new(policy)));
        Ok(())
    }
}

fn word(need: Need) -> String {
    need.as_str().to_owned()
}

impl<P: RankPolicy> rank::Guest for Exported<P> {
    fn rank(
        context: Context,
        offerings: rank::Offerings,
        usage: rank::Usage,
        workloads: Workloads,
        claims: Vec<rank::Claim>,
    ) -> Result<rank::Rankings, PolicyError> {
        let symbols = &offerings.symbols;
        let call = RankCall {
            context: &context,
            offerings: &offerings,
            usage: UsageView {
                table: &usage,
                symbols,
            },
            workloads: WorkloadsView {
                table: &workloads,
                symbols,
            },
            claims: &claims,
        };
        Self::with(|policy| policy.rank(&call))
    }
}

impl<P: ConsolidationPolicy> consolidation::Guest for Exported<P> {
    fn order(
        context: Context,
        nodes: consolidation::Nodes,
        pools: Vec<consolidation::Pool>,
        workloads: Workloads,
    ) -> Result<Vec<f64>, PolicyError> {
        let call = consolidation_call(&context, &nodes, &pools, &workloads);
        Self::with(|policy| policy.order(&call))
    }

    fn judge(
        context: Context,
        nodes: consolidation::Nodes,
        pools: Vec<consolidation::Pool>,
        workloads: Workloads,
        moves: Vec<consolidation::Move>,
    ) -> Result<consolidation::Verdicts, PolicyError> {
        let call = consolidation_call(&context, &nodes, &pools, &workloads);
        Self::with(|policy| policy.judge(&call, &moves))
    }
}

fn consolidation_call<'a>(
    context: &'a Context,
    table: &'a consolidation::Nodes,
    pools: &'a [consolidation::Pool],
    workloads: &'a Workloads,
) -> ConsolidationCall<'a> {
    ConsolidationCall {
        context,
        table,
        pools,
        workloads: WorkloadsView {
            table: workloads,
            symbols: &table.symbols,
        },
    }
}

impl<P: BudgetPolicy> budgets::Guest for Exported<P> {
    fn allow(
        context: Context,
        pools: Vec<budgets::Pool>,
    ) -> Result<budgets::Allowances, PolicyError> {
        Self::with(|policy| policy.allow(&context, &pools))
    }
}
