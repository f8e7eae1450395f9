//! What EC2 says of dry runs of a class, and how long it is believed.

use std::sync::Arc;

use apis::conditions::{self, READY, VALIDATION_SUCCEEDED};
use apis::{Ec2NodeClass, NodePool, NodeSelectorRequirementWithMinValues, Operator, labels};
use cloudprovider::CloudProvider as _;

use super::catalogue::infos;
use super::{Rig, class};
use crate::seam::ApiError;

fn rig() -> Rig {
    Rig::with_options(infos(&["m5.large", "c5.large", "g4dn.xlarge"]), |options| {
        options.disable_dry_run = false;
    })
}

fn pool(key: &str, value: &str) -> Arc<NodePool> {
    let mut pool = NodePool::default();
    pool.spec.template.spec.requirements = vec![NodeSelectorRequirementWithMinValues::new(
        key,
        Operator::In,
        [value.to_owned()],
    )];
    Arc::new(pool)
}

/// Status, reason and message of the validation, and whether the class is ready.
async fn validated(rig: &Rig, class: &mut Ec2NodeClass) -> (String, String, String, bool) {
    let resolved = rig.provider.resolve_node_class(class, &[]).await.unwrap();
    class.status = Some(resolved.status);
    class.metadata.annotations = Some(resolved.annotations);
    let conditions = &class.status.as_ref().unwrap().conditions;
    let found = conditions::get(conditions, VALIDATION_SUCCEEDED).unwrap();
    let is_ready = conditions::is_true(conditions, READY);
    (
        found.status.clone(),
        found.reason.clone(),
        found.message.clone(),
        is_ready,
    )
}

#[tokio::test(start_paused = true)]
async fn a_class_is_ready_once_ec2_would_launch_from_it() {
    let rig = rig();
    let mut class = class();
    let (status, _, message, is_ready) = validated(&rig, &mut class).await;
    assert_eq!((status.as_str(), is_ready), ("True", true), "{message}");
    let (fleet, run) = rig
        .aws
        .edit(|it| (it.trials[0].clone(), it.runs[0].clone()));
    assert_eq!(fleet.dry_run, Some(true));
    let overrides = fleet.launch_template_configs()[0].overrides();
    assert_eq!(overrides.len(), 2, "each subnet");
    assert_eq!(
        run.instance_type.unwrap().as_str(),
        "m5.large",
        "common, as no pool says anything"
    );
    let template = run.launch_template.unwrap().launch_template_name.unwrap();
    assert!(rig.aws.edit(|it| it.templates.contains_key(&template)));
    assert_eq!(rig.aws.calls("CreateFleet"), 0);
    // It is believed for half an hour, and the template goes like any other.
    rig.pass(120);
    rig.provider.sweep_launch_templates().await;
    assert!(rig.aws.edit(|it| it.templates.is_empty()));
    validated(&rig, &mut class).await;
    assert_eq!(rig.aws.calls("RunInstances DryRun"), 1);
    rig.pass(1800);
    validated(&rig, &mut class).await;
    class.spec.tags.insert("team".to_owned(), "b".to_owned());
    validated(&rig, &mut class).await;
    assert_eq!(rig.aws.calls("RunInstances DryRun"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_permission_and_is_asked_again_in_ten_minutes() {
    let denied = || {
        ApiError::client(
            "UnauthorizedOperation",
            "no identity-based policy allows it",
        )
    };
    let large = || {
        ApiError::client(
            "InvalidUserData.Malformed",
            "User data is limited to 16384 bytes",
        )
    };
    let cases = [
        (
            "CreateLaunchTemplate",
            denied(),
            "CreateLaunchTemplateAuthCheckFailed",
            "ec2:CreateLaunchTemplate",
        ),
        (
            "CreateFleet",
            denied(),
            "CreateFleetAuthCheckFailed",
            "ec2:CreateFleet",
        ),
        (
            "RunInstances",
            denied(),
            "RunInstancesAuthCheckFailed",
            "ec2:RunInstances",
        ),
        (
            "CreateLaunchTemplate",
            large(),
            "UserDataSizeLimitExceeded",
            "too large",
        ),
    ];
    for (operation, refusal, want, words) in cases {
        let rig = rig();
        rig.aws.edit(|it| it.verdicts.insert(operation, refusal));
        let mut class = class();
        for seconds in [0, 60] {
            rig.pass(seconds);
            let (status, reason, message, is_ready) = validated(&rig, &mut class).await;
            assert_eq!(
                (status.as_str(), reason.as_str(), is_ready),
                ("False", want, false)
            );
            assert!(message.contains(words), "{message}");
            // Within the time it is not asked again, though the cause is gone.
            rig.aws.edit(|it| it.verdicts.clear());
        }
        rig.pass(600);
        assert_eq!(validated(&rig, &mut class).await.0, "True", "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_class_waits_until_ec2_has_heard_of_its_profile() {
    let unknown = || {
        let message = "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name";
        ApiError::client("InvalidParameterValue", message)
    };
    for (named, want) in [(None, "Unknown"), (Some("theirs"), "False")] {
        let rig = rig();
        rig.aws
            .edit(|it| it.verdicts.insert("RunInstances", unknown()));
        let mut class = class();
        class.spec.instance_profile = named.map(str::to_owned);
        let (status, reason, ..) = validated(&rig, &mut class).await;
        assert_eq!(
            (status.as_str(), reason.as_str()),
            (want, "InstanceProfileNotFound")
        );
        rig.aws.edit(|it| it.verdicts.clear());
        assert_eq!(validated(&rig, &mut class).await.0, "True");
    }
}

#[tokio::test(start_paused = true)]
async fn what_ec2_cannot_say_now_leaves_the_class_as_it_was() {
    let rig = rig();
    let mut class = class();
    validated(&rig, &mut class).await;
    rig.pass(1801);
    for error in [
        ApiError::client("RequestLimitExceeded", "slow down"),
        ApiError::server("InternalError", "x"),
    ] {
        rig.aws.edit(|it| it.verdicts.insert("CreateFleet", error));
        assert!(validated(&rig, &mut class).await.3);
    }
    assert_eq!(rig.aws.calls("RunInstances DryRun"), 1);
    rig.aws.edit(|it| it.verdicts.clear());
    validated(&rig, &mut class).await;
    assert_eq!(rig.aws.calls("RunInstances DryRun"), 2);
}

#[tokio::test(start_paused = true)]
async fn the_dry_run_is_of_what_the_pools_of_the_class_allow() {
    let cases = [
        (
            vec![pool(labels::INSTANCE_TYPE, "m5.large")],
            "m5.large",
            "default",
        ),
        (
            vec![pool(labels::INSTANCE_TYPE, "g4dn.xlarge")],
            "g4dn.xlarge",
            "default",
        ),
        (
            vec![pool(labels::INSTANCE_TYPE, "x1.large")],
            "m5.large",
            "default",
        ),
        (
            vec![pool(labels::INSTANCE_TENANCY, "dedicated")],
            "c5.large",
            "dedicated",
        ),
    ];
    for (pools, instance_type, tenancy) in cases {
        let rig = rig();
        rig.provider
            .resolve_node_class(&class(), &pools)
            .await
            .unwrap();
        let run = rig.aws.edit(|it| it.runs[0].clone());
        assert_eq!(run.instance_type.unwrap().as_str(), instance_type);
        let name = run.launch_template.unwrap().launch_template_name.unwrap();
        let data = rig.aws.edit(|it| it.templates[&name].clone());
        assert_eq!(
            data.placement().unwrap().tenancy().unwrap().as_str(),
            tenancy
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_that_could_not_be_deleted_is_deleted_by_the_next_sweep() {
    let rig = rig();
    validated(&rig, &mut class()).await;
    let fails = ApiError::server("InternalError", "x");
    rig.aws
        .edit(|it| it.verdicts.insert("DeleteLaunchTemplate", fails));
    for left in [1, 0] {
        rig.pass(120);
        rig.provider.sweep_launch_templates().await;
        assert_eq!(rig.aws.edit(|it| it.templates.len()), left);
        rig.aws.edit(|it| it.verdicts.clear());
    }
}
