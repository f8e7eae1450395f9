//! Everything that comes before a policy may decide: its bytes are checked, compiled, described, held to its schema,
//! and tried on golden and made-up rounds.

use std::sync::Arc;

use hooks::policy_use::PolicyKind;
use locks::read;

use crate::active_policy::{ActivePolicy, Program};
use crate::binding::{Binding, PolicySource};
use crate::builtin;
use crate::digest::digest;
use crate::guest::module::{Module, Origin, check_functions};
use crate::host::HostState;
use crate::interface::exchange::Descriptor;
use crate::load_error::LoadError;
use crate::needs::PolicyNeeds;
use crate::records::PolicyEvent;
use crate::rule::PolicyRule;
use crate::schema::ConfigSchema;
use crate::trying::{conformance, golden};

/// A policy that may decide.
pub(crate) struct LoadedPolicy {
    pub(crate) policy: ActivePolicy,
    /// For the status of its binding: who it says it is, and what is worth knowing of it.
    pub(crate) message: String,
}

impl HostState {
    /// The built-in default of a kind; `None` when its component does not load, which only a broken
    /// build brings about. Native code decides then.
    pub(crate) fn default_of(&self, kind: PolicyKind) -> Option<Arc<ActivePolicy>> {
        let slot = match kind {
            PolicyKind::Rank => &self.defaults[0],
            PolicyKind::Consolidation => &self.defaults[1],
            PolicyKind::Budgets => &self.defaults[2],
        };
        slot.get_or_init(|| {
            let builtin = builtin::find(builtin::default_of(kind))?;
            match self.module(builtin.component(), Origin::BuiltIn) {
                Ok(module) => Some(Arc::new(ActivePolicy::default_of(
                    kind,
                    Program::Component(module),
                ))),
                Err(error) => {
                    self.report(PolicyEvent {
                        binding: None,
                        kind,
                        reason: error.reason().to_owned(),
                        message: format!("the built-in default cannot be loaded: {error}"),
                    });
                    None
                }
            }
        })
        .clone()
    }

    pub(crate) fn module(&self, bytes: &[u8], origin: Origin) -> Result<Arc<Module>, LoadError> {
        let bytes_max = self.limits.component_bytes_max;
        if bytes.len() > bytes_max {
            return Err(LoadError::TooLarge {
                bytes: bytes.len(),
                bytes_max,
            });
        }
        // A built-in carried by a ConfigMap is not trusted for that: the two are kept apart.
        let known = self.modules().get(&digest(bytes), origin);
        if let Some(known) = known {
            return known;
        }
        let loaded = match origin {
            Origin::BuiltIn => Module::built_in(&self.linker, bytes),
            Origin::Given => {
                check_functions(bytes, self.limits.function_bytes_max).and_then(|()| {
                    self.compilers
                        .compile(&self.linker, bytes, self.limits.compile)
                })
            }
        };
        let loaded = loaded.map(Arc::new);
        self.modules().keep(bytes, &loaded);
        loaded
    }

    /// Everything that comes before a policy may decide.
    pub(crate) fn load(&self, binding: Binding) -> Result<LoadedPolicy, LoadError> {
        let expected = binding.sha256.as_deref();
        match &binding.source {
            PolicySource::Builtin(name) => {
                let component = builtin::find(name).map_or(&[][..], |builtin| builtin.component());
                let module = self.checked_module(component, Origin::BuiltIn, expected)?;
                self.load_module(binding, &module)
            }
            PolicySource::Module(bytes) => {
                let module = self.checked_module(bytes, Origin::Given, expected)?;
                self.load_module(binding, &module)
            }
            PolicySource::Rule(source) => {
                let rule = Arc::new(PolicyRule::compile(
                    source,
                    &binding.kinds,
                    &binding.config,
                )?);
                check_digest(expected, &rule.digest)?;
                let message = rule.summary();
                let needs = rule.needs();
                self.check_needs(&needs, &binding)?;
                let policy = ActivePolicy::of(binding, Program::Rule(rule), needs);
                golden::try_rule(self, &policy)?;
                self.conformant(policy, message)
            }
        }
    }

    fn load_module(
        &self,
        binding: Binding,
        module: &Arc<Module>,
    ) -> Result<LoadedPolicy, LoadError> {
        for kind in &binding.kinds {
            module.check_kind(*kind)?;
        }
        let descriptor = module.describe(self.grant(self.limits.load))?;
        let unchecked = held_to_schema(&descriptor, &binding.config)?;
        let warnings = module.validate(&binding.config, self.grant(self.limits.load))?;
        let needs = PolicyNeeds::parse(&descriptor.needs)?;
        self.check_needs(&needs, &binding)?;
        // The built-ins are held to it when they are built.
        let origin = module.origin;
        let policy = ActivePolicy::of(binding, Program::Component(Arc::clone(module)), needs);
        for kind in &policy.kinds {
            let extended = self.limits.of(*kind).extended();
            golden::try_out(module, *kind, &policy, self.grant(extended))?;
        }
        let mut message = format!(
            "{} {}: {}",
            descriptor.name, descriptor.version, descriptor.summary
        );
        for warning in warnings {
            message = format!("{message}; data.config: {warning}");
        }
        for note in unchecked {
            message = format!("{message}; note: {note}");
        }
        if origin == Origin::BuiltIn {
            return Ok(LoadedPolicy { policy, message });
        }
        self.conformant(policy, message)
    }

    fn check_needs(&self, needs: &PolicyNeeds, binding: &Binding) -> Result<(), LoadError> {
        let provided = *read(&self.provider);
        Ok(needs.check(provided, binding.facts.has_rates())?)
    }

    /// Puts made-up rounds to what is to be bound; what is worth knowing of it goes into its message.
    fn conformant(&self, policy: ActivePolicy, message: String) -> Result<LoadedPolicy, LoadError> {
        let on_trial = ActivePolicy {
            is_on_trial: true,
            ..policy.clone()
        };
        let notes = conformance::gate(self, &on_trial)?;
        let message = notes
            .iter()
            .fold(message, |message, note| format!("{message}; note: {note}"));
        Ok(LoadedPolicy { policy, message })
    }

    fn checked_module(
        &self,
        bytes: &[u8],
        origin: Origin,
        expected: Option<&str>,
    ) -> Result<Arc<Module>, LoadError> {
        if expected.is_some() {
            check_digest(expected, &digest(bytes))?;
        }
        self.module(bytes, origin)
    }
}

/// Refuses a configuration that the component's schema does not allow; gives what the host does not check of it.
fn held_to_schema(descriptor: &Descriptor, config: &str) -> Result<Vec<String>, LoadError> {
    let Some(schema) = ConfigSchema::parse(&descriptor.config_schema)? else {
        return Ok(Vec::new());
    };
    match schema.faults(config) {
        None => Ok(schema.notes().to_vec()),
        Some(faults) => Err(LoadError::Config(faults)),
    }
}

fn check_digest(expected: Option<&str>, found: &str) -> Result<(), LoadError> {
    match expected {
        Some(expected) if found.strip_prefix("sha256:") != Some(expected) => {
            Err(LoadError::Digest {
                expected: expected.to_owned(),
                found: found.to_owned(),
            })
        }
        Some(_) | None => Ok(()),
    }
}
