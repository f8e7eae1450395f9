//! Rights of the controller: the table of actions as statements of a policy.
//!
//! Allows nothing that the table does not name.

use super::actions::{ACTIONS, AwsAction};
use super::needs::AccountOptions;
use super::scopes::ActionScope;
use super::statement::{PolicyStatement, StatementCondition, StatementEffect, StatementPrincipal};

/// The actions that an installation needs.
pub(super) fn needed(options: &AccountOptions) -> impl Iterator<Item = &'static AwsAction> {
    ACTIONS.iter().filter(|it| it.need.is_met(options))
}

/// The statements that allow them, each where the table first names it.
pub(super) fn controller_policy(options: &AccountOptions) -> Vec<PolicyStatement> {
    let mut statements: Vec<PolicyStatement> = Vec::new();
    for action in needed(options) {
        for scope in action.scopes {
            let known = statements.iter_mut().find(|it| it.sid == scope.sid);
            match known {
                Some(statement) => statement.actions.push(action.name),
                None => statements.push(allowing(action, scope)),
            }
        }
    }
    statements
}

fn allowing(action: &AwsAction, scope: &ActionScope) -> PolicyStatement {
    let owned = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
    let conditions = scope.conditions.iter().map(|it| StatementCondition {
        operator: it.operator,
        key: it.key.to_owned(),
        values: owned(it.values),
    });
    PolicyStatement {
        sid: scope.sid,
        effect: StatementEffect::Allow,
        principal: StatementPrincipal::Bearer,
        actions: vec![action.name],
        resources: owned(scope.resources),
        conditions: conditions.collect(),
    }
}
