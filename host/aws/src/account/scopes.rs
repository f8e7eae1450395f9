//! What actions are allowed on, and on which conditions: a statement of the controller's policy each, without its
//! actions.
//!
//! What is made carries the tag of the cluster and of its NodePool, and only what carries them is changed or ended: the
//! nodes of a managed node group carry the first as well. The tags are those of [`crate::tags`]. Answers to the
//! statements of Karpenter's policies.

/// A statement of which the actions come of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ActionScope {
    /// Name of the statement.
    pub(super) sid: &'static str,
    /// ARNs, names between braces.
    pub(super) resources: &'static [&'static str],
    /// Of which all must be met.
    pub(super) conditions: &'static [ScopeCondition],
}

/// A condition of a statement, names between braces.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScopeCondition {
    /// How values are compared, such as `StringEquals`.
    pub(super) operator: &'static str,
    /// Key of the request that is compared.
    pub(super) key: &'static str,
    /// Of which one must be met.
    pub(super) values: &'static [&'static str],
}

const fn equals(key: &'static str, values: &'static [&'static str]) -> ScopeCondition {
    ScopeCondition {
        operator: "StringEquals",
        key,
        values,
    }
}

/// Whatever its value, it is there.
const fn exists(key: &'static str) -> ScopeCondition {
    ScopeCondition {
        operator: "StringLike",
        key,
        values: &["*"],
    }
}

const RESOURCE_IS_OF_THE_CLUSTER: ScopeCondition = equals(
    "aws:ResourceTag/kubernetes.io/cluster/{cluster}",
    &["owned"],
);
const RESOURCE_IS_OF_A_NODE_POOL: ScopeCondition = exists("aws:ResourceTag/karpenter.sh/nodepool");
const REQUEST_TAGS_THE_CLUSTER: ScopeCondition =
    equals("aws:RequestTag/kubernetes.io/cluster/{cluster}", &["owned"]);
const REQUEST_TAGS_A_NODE_POOL: ScopeCondition = exists("aws:RequestTag/karpenter.sh/nodepool");

/// The queue of interruptions.
pub(super) const QUEUE_ARN: &str = "arn:{partition}:sqs:{region}:{account}:{cluster}";
const CLUSTER_ARN: &str = "arn:{partition}:eks:{region}:{account}:cluster/{cluster}";
const INSTANCES: &str = "arn:{partition}:ec2:{region}:*:instance/*";
const LAUNCH_TEMPLATES: &str = "arn:{partition}:ec2:{region}:*:launch-template/*";
const INSTANCE_PROFILES: &str = "arn:{partition}:iam::{account}:instance-profile/*";

/// Resources that a launch makes.
const MADE: &[&str] = &[
    "arn:{partition}:ec2:{region}:*:fleet/*",
    INSTANCES,
    "arn:{partition}:ec2:{region}:*:volume/*",
    "arn:{partition}:ec2:{region}:*:network-interface/*",
    LAUNCH_TEMPLATES,
    "arn:{partition}:ec2:{region}:*:spot-instances-request/*",
];

/// EC2 lets nobody see a part of what it lists.
pub(super) static LOOK: ActionScope = ActionScope {
    sid: "Look",
    resources: &["*"],
    conditions: &[equals("aws:RequestedRegion", &["{region}"])],
};

/// The price list is in few regions, IAM in none.
pub(super) static LOOK_ELSEWHERE: ActionScope = ActionScope {
    sid: "LookElsewhere",
    resources: &["*"],
    conditions: &[],
};

pub(super) static PARAMETERS: ActionScope = ActionScope {
    sid: "Parameters",
    resources: &["arn:{partition}:ssm:{region}::parameter/aws/service/*"],
    conditions: &[],
};

pub(super) static CLUSTER: ActionScope = ActionScope {
    sid: "Cluster",
    resources: &[CLUSTER_ARN],
    conditions: &[],
};

/// The resources that IAM knows of ARC are load balancers; a cluster is told by the condition.
pub(super) static ZONAL_SHIFTS: ActionScope = ActionScope {
    sid: "ZonalShifts",
    resources: &["*"],
    conditions: &[equals("arc-zonal-shift:ResourceIdentifier", &[CLUSTER_ARN])],
};

/// Resources that a launch takes, which others made.
pub(super) static LAUNCH_FROM: ActionScope = ActionScope {
    sid: "LaunchFrom",
    resources: &[
        "arn:{partition}:ec2:{region}::image/*",
        "arn:{partition}:ec2:{region}::snapshot/*",
        "arn:{partition}:ec2:{region}:*:security-group/*",
        "arn:{partition}:ec2:{region}:*:subnet/*",
        "arn:{partition}:ec2:{region}:*:capacity-reservation/*",
        "arn:{partition}:ec2:{region}:*:placement-group/*",
    ],
    conditions: &[],
};

pub(super) static LAUNCH_BY_OUR_TEMPLATES: ActionScope = ActionScope {
    sid: "LaunchByOurTemplates",
    resources: &[LAUNCH_TEMPLATES],
    conditions: &[RESOURCE_IS_OF_THE_CLUSTER, RESOURCE_IS_OF_A_NODE_POOL],
};

pub(super) static MAKE_WHAT_CARRIES_THE_TAG: ActionScope = ActionScope {
    sid: "MakeWhatCarriesTheTag",
    resources: MADE,
    conditions: &[REQUEST_TAGS_THE_CLUSTER, REQUEST_TAGS_A_NODE_POOL],
};

/// Tags come with what is made, so that nothing of others is tagged as ours.
pub(super) static TAG_WHAT_IS_MADE: ActionScope = ActionScope {
    sid: "TagWhatIsMade",
    resources: MADE,
    conditions: &[
        REQUEST_TAGS_THE_CLUSTER,
        REQUEST_TAGS_A_NODE_POOL,
        equals(
            "ec2:CreateAction",
            &["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        ),
    ],
};

pub(super) static TAG_INSTANCES_LATER: ActionScope = ActionScope {
    sid: "TagInstancesLater",
    resources: &[INSTANCES],
    conditions: &[
        RESOURCE_IS_OF_THE_CLUSTER,
        RESOURCE_IS_OF_A_NODE_POOL,
        ScopeCondition {
            operator: "ForAllValues:StringEquals",
            key: "aws:TagKeys",
            values: &["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"],
        },
    ],
};

pub(super) static END_WHAT_IS_OURS: ActionScope = ActionScope {
    sid: "EndWhatIsOurs",
    resources: &[INSTANCES, LAUNCH_TEMPLATES],
    conditions: &[RESOURCE_IS_OF_THE_CLUSTER, RESOURCE_IS_OF_A_NODE_POOL],
};

/// The service is called otherwise in China.
pub(super) static ROLE_OF_THE_NODES: ActionScope = ActionScope {
    sid: "RoleOfTheNodes",
    resources: &["arn:{partition}:iam::{account}:role/{node-role}"],
    conditions: &[equals(
        "iam:PassedToService",
        &["ec2.amazonaws.com", "ec2.amazonaws.com.cn"],
    )],
};

pub(super) static LOOK_AT_PROFILES: ActionScope = ActionScope {
    sid: "LookAtProfiles",
    resources: &[INSTANCE_PROFILES],
    conditions: &[],
};

/// IAM is the same in all regions, and a cluster of the name may be in another.
pub(super) static MAKE_PROFILES: ActionScope = ActionScope {
    sid: "MakeProfiles",
    resources: &[INSTANCE_PROFILES],
    conditions: &[
        REQUEST_TAGS_THE_CLUSTER,
        equals(
            "aws:RequestTag/topology.kubernetes.io/region",
            &["{region}"],
        ),
    ],
};

pub(super) static CHANGE_OUR_PROFILES: ActionScope = ActionScope {
    sid: "ChangeOurProfiles",
    resources: &[INSTANCE_PROFILES],
    conditions: &[
        RESOURCE_IS_OF_THE_CLUSTER,
        equals(
            "aws:ResourceTag/topology.kubernetes.io/region",
            &["{region}"],
        ),
    ],
};

pub(super) static QUEUE: ActionScope = ActionScope {
    sid: "Queue",
    resources: &[QUEUE_ARN],
    conditions: &[],
};
