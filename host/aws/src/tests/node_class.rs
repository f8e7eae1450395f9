//! The status of a class.

use apis::conditions::{self, READY};
use apis::ec2nodeclass::AmiSelectorTerm;
use apis::{Ec2NodeClass, labels};
use cloudprovider::CloudProvider;

use super::catalogue::infos;
use super::{Rig, class};
use crate::fake::{image, subnet};

#[tokio::test(start_paused = true)]
async fn a_class_whose_parts_resolve_is_ready() {
    let rig = Rig::new(infos(&["m5.large"]));
    rig.aws
        .edit(|state| state.subnets.push(subnet("subnet-9", "us-east-1a", 2000)));
    let class = rig.resolve(class()).await;
    let status = class.status.unwrap();
    assert!(
        conditions::is_true(&status.conditions, READY),
        "{:?}",
        status.conditions
    );
    let subnets: Vec<&str> = status
        .subnets
        .iter()
        .map(|subnet| subnet.id.as_str())
        .collect();
    assert_eq!(
        subnets,
        ["subnet-9", "subnet-0", "subnet-1"],
        "the emptiest first"
    );
    assert_eq!(status.security_groups[0].id, "sg-1");
    let amis: Vec<&str> = status.amis.iter().map(|ami| ami.id.as_str()).collect();
    assert_eq!(amis, ["ami-arm", "ami-gpu", "ami-x86"]);
    let keys: Vec<&str> = status.amis[2]
        .requirements
        .iter()
        .map(|r| r.key.as_str())
        .collect();
    assert_eq!(
        keys,
        [
            labels::ARCH,
            labels::INSTANCE_GPU_COUNT,
            labels::INSTANCE_ACCELERATOR_COUNT
        ]
    );
    let profile = status.instance_profile.unwrap();
    assert!(profile.starts_with("demo_"));
    assert_eq!(
        rig.aws.edit(|state| state.profiles[&profile].clone()),
        "node-role"
    );
    let annotations = class.metadata.annotations.unwrap();
    assert_eq!(
        annotations[labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION],
        "v6"
    );
}

type Change = Box<dyn FnOnce(&mut Ec2NodeClass)>;

/// Status, reason and message part of one condition of a changed class.
async fn check(change: Change, condition: &str, want: (&str, &str, &str)) {
    let rig = Rig::new(infos(&["m5.large"]));
    let mut class = class();
    change(&mut class);
    let status = rig.resolve(class).await.status.unwrap();
    let found = conditions::get(&status.conditions, condition).unwrap();
    let (state, reason, message) = want;
    assert_eq!(
        (found.status.as_str(), found.reason.as_str()),
        (state, reason),
        "{}",
        found.message
    );
    assert!(found.message.contains(message), "{}", found.message);
    assert!(!conditions::is_true(&status.conditions, READY));
}

#[tokio::test(start_paused = true)]
async fn a_class_says_which_selector_finds_nothing() {
    let alias = AmiSelectorTerm {
        alias: Some("al2@latest".to_owned()),
        ..AmiSelectorTerm::default()
    };
    let name = AmiSelectorTerm {
        name: Some("none".to_owned()),
        ..AmiSelectorTerm::default()
    };
    let cases: [(Change, &str, &str, &str); 4] = [
        (
            Box::new(|class| {
                class.spec.subnet_selector_terms[0].id = Some("subnet-none".to_owned());
            }),
            "SubnetsReady",
            "SubnetsNotFound",
            "spec.subnetSelectorTerms",
        ),
        (
            Box::new(|class| {
                class.spec.security_group_selector_terms[0].id = Some("sg-none".to_owned());
            }),
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "spec.securityGroupSelectorTerms",
        ),
        (
            Box::new(move |class| class.spec.ami_selector_terms = vec![alias]),
            "AMIsReady",
            "UnsupportedAlias",
            "1.32",
        ),
        (
            Box::new(move |class| class.spec.ami_selector_terms = vec![name]),
            "AMIsReady",
            "AMINotFound",
            "spec.amiSelectorTerms",
        ),
    ];
    for (change, condition, reason, message) in cases {
        check(change, condition, ("False", reason, message)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_class_says_what_does_not_make_sense_in_it() {
    let tag = |class: &mut Ec2NodeClass| {
        class
            .spec
            .tags
            .insert("karpenter.sh/nodepool".to_owned(), "x".to_owned());
    };
    let kubelet = |value: serde_json::Value| -> Change {
        Box::new(move |class| {
            class.spec.kubelet.insert("maxPods".to_owned(), value);
        })
    };
    let role = |class: &mut Ec2NodeClass| class.spec.role = Some("no-such-role".to_owned());
    let cases: [(Change, (&str, &str, &str)); 4] = [
        (
            Box::new(tag),
            ("False", "TagValidationFailed", "karpenter.sh/nodepool"),
        ),
        (
            kubelet(serde_json::json!(-1)),
            (
                "False",
                "InvalidKubeletConfiguration",
                "spec.kubelet.maxPods",
            ),
        ),
        (
            kubelet(serde_json::json!("vcpus * 8")),
            ("False", "KubeletExpressionsDisabled", "maxPods"),
        ),
        (
            Box::new(role),
            ("Unknown", "DependenciesNotReady", "InstanceProfileReady"),
        ),
    ];
    for (change, want) in cases {
        check(change, "ValidationSucceeded", want).await;
    }
}

#[tokio::test(start_paused = true)]
async fn current_images_beat_deprecated_and_older_ones() {
    let rig = Rig::new(infos(&["m5.large"]));
    rig.aws.edit(|state| {
        let mut deprecated = image("ami-new", "x86_64", "2025-12-30T00:00:00.000Z");
        deprecated.deprecation_time = Some("2025-12-31T00:00:00.000Z".to_owned());
        deprecated.name = Some("mine".to_owned());
        let mut current = image("ami-old", "x86_64", "2025-01-01T00:00:00.000Z");
        current.name = Some("mine".to_owned());
        state.images.extend([deprecated, current]);
    });
    let mut class = class();
    class.spec.ami_selector_terms = vec![AmiSelectorTerm {
        name: Some("mine".to_owned()),
        ..AmiSelectorTerm::default()
    }];
    class.spec.ami_family = Some(apis::AmiFamily::Al2023);
    let status = rig.resolve(class).await.status.unwrap();
    assert_eq!(status.amis.len(), 1);
    assert_eq!(
        (status.amis[0].id.as_str(), status.amis[0].deprecated),
        ("ami-old", false)
    );
}

#[tokio::test(start_paused = true)]
async fn release_takes_profiles_and_templates_away() {
    let rig = Rig::new(infos(&["m5.large"]));
    let class = rig.resolve(class()).await;
    assert_eq!(rig.aws.edit(|state| state.profiles.len()), 1);
    // As a Karpenter named it that knew no paths; others keep theirs.
    let legacy = format!("demo_{}", apis::hash::text("us-east-1default"));
    let other = "demo_1".to_owned();
    rig.aws.edit(|state| {
        for name in [&legacy, &other] {
            state.profiles.insert(name.clone(), "node-role".to_owned());
        }
    });
    rig.provider.release_node_class(&class).await.unwrap();
    assert!(
        rig.aws
            .edit(|state| state.profiles.remove(&other))
            .is_some()
    );
    assert_eq!(rig.aws.edit(|state| state.profiles.len()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_published_image_that_is_deprecated_is_looked_for_again_at_ssm() {
    let rig = Rig::new(infos(&["m5.large"]));
    let amis = async || {
        let status = rig.resolve(class()).await.status.unwrap();
        let ids = status.amis.into_iter().map(|ami| ami.id);
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(amis().await, "ami-arm ami-gpu ami-x86");
    // Another is published, and the first deprecated: the parameter would be believed for a day.
    rig.aws.edit(|state| {
        for value in state.parameters.values_mut().filter(|it| *it == "ami-x86") {
            *value = "ami-next".to_owned();
        }
        state
            .images
            .push(image("ami-next", "x86_64", "2026-01-01T00:00:00.000Z"));
        let old = state
            .images
            .iter_mut()
            .find(|it| it.image_id() == Some("ami-x86"));
        old.unwrap().deprecation_time = Some("2026-01-01T00:00:30.000Z".to_owned());
    });
    assert_eq!(amis().await, "ami-arm ami-gpu ami-x86");
    rig.pass(61);
    assert_eq!(amis().await, "ami-next ami-arm ami-gpu");
    // One that stays deprecated is asked about every half an hour and used meanwhile.
    rig.aws.edit(|state| {
        let newest = state.images.last_mut().unwrap();
        newest.deprecation_time = Some("2026-01-01T00:00:30.000Z".to_owned());
    });
    let asked = || rig.aws.calls("GetParameter");
    let mut before = asked();
    // The two parameters that are not there are asked for with each look; looking twice asks for them twice.
    for (seconds, reads) in [(61, 2), (1800, 5), (61, 2)] {
        rig.pass(seconds);
        assert_eq!(amis().await, "ami-next ami-arm ami-gpu");
        assert_eq!(asked() - before, reads, "after {seconds} s");
        before = asked();
    }
}

#[tokio::test(start_paused = true)]
async fn a_profile_with_the_role_is_kept_and_one_that_nobody_uses_goes() {
    let rig = Rig::new(infos(&["m5.large"]));
    let mut class = class();
    class.status.get_or_insert_default().instance_profile = Some("theirs".to_owned());
    let roles = [("theirs", "node-role")].map(|(name, role)| (name.to_owned(), role.to_owned()));
    rig.aws.edit(|state| state.profiles.extend(roles));
    let profile = |class: &Ec2NodeClass| class.status.clone().unwrap().instance_profile.unwrap();
    class = rig.resolve(class).await;
    assert_eq!(profile(&class), "theirs", "as Karpenter left it");
    class.spec.role = Some("other-role".to_owned());
    class = rig.resolve(class).await;
    let second = profile(&class);
    class.spec.role = Some("third-role".to_owned());
    class = rig.resolve(class).await;
    let third = profile(&class);
    let names = || {
        rig.aws
            .edit(|it| it.profiles.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(names().len(), 3);
    // A claim launched lately may bear the second and not be seen yet.
    let in_use = [third.clone()].into();
    rig.provider.release_unused(&in_use).await.unwrap();
    assert_eq!(names().len(), 3);
    rig.pass(3601);
    let claimed = [third.clone(), second.clone()].into();
    rig.provider.release_unused(&claimed).await.unwrap();
    assert_eq!(names().len(), 3);
    rig.provider.release_unused(&in_use).await.unwrap();
    assert_eq!(
        names(),
        [third, "theirs".to_owned()],
        "what was not made here stays"
    );
    assert!(!names().contains(&second));
}

#[tokio::test(start_paused = true)]
async fn a_profile_that_may_not_be_deleted_keeps_no_other() {
    let rig = Rig::new(infos(&["m5.large"]));
    let mut class = class();
    for role in ["first-role", "second-role", "third-role"] {
        class.spec.role = Some(role.to_owned());
        class = rig.resolve(class).await;
    }
    let names = || {
        rig.aws
            .edit(|it| it.profiles.keys().cloned().collect::<Vec<_>>())
    };
    let first = names()[0].clone();
    assert_eq!(names().len(), 3);
    rig.aws
        .edit(|state| state.fixed_profile = Some(first.clone()));
    rig.pass(3601);
    let released = rig.provider.release_unused(&[].into()).await;
    assert!(released.unwrap_err().to_string().contains("AccessDenied"));
    assert_eq!(names(), [first]);
}
