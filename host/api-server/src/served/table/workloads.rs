//! Workloads as `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{age, count, human_duration, labels_text, name, or_none, since};
use super::printer::Printer;
use crate::conditions::is_true;

/// The printer of a workload kind.
pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Deployment" => DEPLOYMENT,
        "ReplicaSet" | "ReplicationController" => REPLICA_SET,
        "StatefulSet" => STATEFUL_SET,
        "DaemonSet" => DAEMON_SET,
        "Job" => JOB,
        "CronJob" => CRON_JOB,
        _ => return None,
    })
}

/// Names and images of the template's containers.
fn containers(template: &Value) -> [Value; 2] {
    let list = |field: &str| -> Value {
        let containers = template["spec"]["containers"].as_array();
        let texts = containers
            .into_iter()
            .flatten()
            .filter_map(|c| c[field].as_str());
        texts.collect::<Vec<_>>().join(",").into()
    };
    [list("name"), list("image")]
}

fn selector(selector: &Value) -> Value {
    if selector.get("matchLabels").is_some() {
        labels_text(&selector["matchLabels"])
    } else {
        labels_text(selector)
    }
}

const DEPLOYMENT: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Up-to-date", "string", 0),
        ("Available", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let [names, images] = containers(&spec["template"]);
        vec![
            name(object),
            format!(
                "{}/{}",
                count(&status["readyReplicas"]),
                count(&spec["replicas"])
            )
            .into(),
            count(&status["updatedReplicas"]).into(),
            count(&status["availableReplicas"]).into(),
            age(object, now),
            names,
            images,
            selector(&spec["selector"]),
        ]
    },
};

const REPLICA_SET: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let [names, images] = containers(&spec["template"]);
        vec![
            name(object),
            count(&spec["replicas"]).into(),
            count(&status["replicas"]).into(),
            count(&status["readyReplicas"]).into(),
            age(object, now),
            names,
            images,
            selector(&spec["selector"]),
        ]
    },
};

const STATEFUL_SET: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let [names, images] = containers(&spec["template"]);
        let ready = format!(
            "{}/{}",
            count(&status["readyReplicas"]),
            count(&spec["replicas"])
        );
        vec![name(object), ready.into(), age(object, now), names, images]
    },
};

const DAEMON_SET: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let [names, images] = containers(&spec["template"]);
        vec![
            name(object),
            count(&status["desiredNumberScheduled"]).into(),
            count(&status["currentNumberScheduled"]).into(),
            count(&status["numberReady"]).into(),
            count(&status["updatedNumberScheduled"]).into(),
            count(&status["numberAvailable"]).into(),
            labels_text(&spec["template"]["spec"]["nodeSelector"]),
            age(object, now),
            names,
            images,
            selector(&spec["selector"]),
        ]
    },
};

const JOB: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Completions", "string", 0),
        ("Duration", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let [names, images] = containers(&spec["template"]);
        let wanted = spec["completions"]
            .as_i64()
            .or_else(|| spec["parallelism"].as_i64());
        let done = format!("{}/{}", count(&status["succeeded"]), wanted.unwrap_or(1));
        vec![
            name(object),
            job_status(object).into(),
            done.into(),
            job_duration(status, now),
            age(object, now),
            names,
            images,
            selector(&spec["selector"]),
        ]
    },
};

fn job_status(job: &Value) -> &'static str {
    if is_true(job, "Complete") {
        "Complete"
    } else if is_true(job, "Failed") {
        "Failed"
    } else if job["metadata"]["deletionTimestamp"].is_string() {
        "Terminating"
    } else if is_true(job, "Suspended") {
        "Suspended"
    } else {
        "Running"
    }
}

fn job_duration(status: &Value, now: Timestamp) -> Value {
    let time = |field: &str| {
        status[field]
            .as_str()
            .and_then(|t| t.parse::<Timestamp>().ok())
    };
    match (time("startTime"), time("completionTime")) {
        (None, _) => "".into(),
        (Some(start), end) => {
            human_duration(end.unwrap_or(now).duration_since(start).as_secs()).into()
        }
    }
}

const CRON_JOB: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Schedule", "string", 0),
        ("Timezone", "string", 0),
        ("Suspend", "boolean", 0),
        ("Active", "integer", 0),
        ("Last Schedule", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let [names, images] = containers(&spec["jobTemplate"]["spec"]["template"]);
        let last = match &status["lastScheduleTime"] {
            Value::Null => "<none>".into(),
            time => since(time, now),
        };
        vec![
            name(object),
            spec["schedule"].clone(),
            or_none(&spec["timeZone"]),
            if spec["suspend"].as_bool() == Some(true) {
                "True"
            } else {
                "False"
            }
            .into(),
            status["active"].as_array().map_or(0, Vec::len).into(),
            last,
            age(object, now),
            names,
            images,
        ]
    },
};
