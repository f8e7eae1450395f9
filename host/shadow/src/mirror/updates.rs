//! How a later version of an object changes the one that is in the shadow.
//!
//! Must leave alone what the shadow's own controllers wrote.

use serde_json::Value;

/// Takes over what the later version says, but not its status and what the shadow's controllers wrote beside it. Of a
/// spec that lacks its template the fields that it has are taken over one by one. Labels and annotations that are null
/// are taken away.
pub fn update(object: &mut Value, later: Value) {
    let Value::Object(fields) = later else {
        return;
    };
    for (field, value) in fields {
        match field.as_str() {
            "status" | "apiVersion" | "kind" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    merge(&mut object["metadata"][part], &value[part]);
                    drop_nulls(&mut object["metadata"][part]);
                }
            }
            "spec" if value["template"].is_null() && !object["spec"]["template"].is_null() => {
                merge(&mut object["spec"], &value);
            }
            _ => object[field.as_str()] = value,
        }
    }
}

fn merge(object: &mut Value, later: &Value) {
    let Some(fields) = later.as_object().filter(|it| !it.is_empty()) else {
        return;
    };
    for (field, value) in fields {
        object[field.as_str()] = value.clone();
    }
}

fn drop_nulls(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_takes_its_spec_over_whole_and_keeps_its_status() {
        let mut pool = json!({
            "metadata": {
                "name": "p", "labels": {"gone": "1", "stays": "2"},
                "annotations": {"karpenter.sh/nodepool-hash": "1"},
            },
            "spec": {"weight": 3, "template": {"a": 1}}, "status": {"nodes": 2},
        });
        let later = json!({
            "metadata": {"name": "p", "uid": "other", "labels": {"x": "y", "gone": null, "never": null}},
            "spec": {"template": {"a": 2}}, "status": {"nodes": 9},
        });
        update(&mut pool, later);
        assert_eq!(
            pool,
            json!({
                "metadata": {
                    "name": "p", "labels": {"stays": "2", "x": "y"},
                    "annotations": {"karpenter.sh/nodepool-hash": "1"},
                },
                "spec": {"template": {"a": 2}}, "status": {"nodes": 2},
            })
        );
    }

    #[test]
    fn a_job_keeps_its_template() {
        let mut job = json!({"spec": {"template": {"a": 1}, "parallelism": 1}});
        update(&mut job, json!({"spec": {"parallelism": 5}}));
        assert_eq!(
            job,
            json!({"spec": {"template": {"a": 1}, "parallelism": 5}})
        );
    }
}
