//! From request to answer: which verb on which resource.
//!
//! Parses and formats; what a verb means is in the modules it calls.

use std::sync::Arc;

use base64::Engine as _;
use http::request::Parts;
use http::{Method, header};
use serde_json::{Value, json};

use super::builtin;
use super::direct::ApiServer;
use super::discovery;
use super::eviction;
use super::garbage_collector::{DeleteOptions, Propagation};
use super::listener::PathPrefix;
use super::openapi;
use super::patch::{self, Patch};
use super::protobuf;
use super::request::{Query, Shape, Target};
use super::resource::Resource;
use super::review;
use super::scale;
use super::schema::unknown;
use super::selectors::{FieldSelector, LabelSelector, Selection};
use super::service::{Answer, answer_bytes, answer_json, answer_status};
use super::status::Status;
use super::store::ObjectKey;
use super::table;
use super::watch_stream;
use super::write::{Part, WriteOptions};

/// Answers any request.
pub(super) fn handle(server: &ApiServer, parts: &Parts, body: &[u8]) -> Answer {
    let result = match parts.uri.path().trim_end_matches('/') {
        "/healthz" | "/readyz" | "/livez" => Ok(answer_bytes(200, "text/plain", b"ok".to_vec())),
        "/version" => Ok(answer_json(200, &discovery::version(server))),
        "" => Ok(answer_json(
            200,
            &json!({"paths": ["/api", "/apis", "/openapi/v3", "/version"]}),
        )),
        path if path.starts_with("/openapi/") => {
            let prefix = parts
                .extensions
                .get::<PathPrefix>()
                .map_or("", |p| p.0.as_str());
            openapi::answer(server, path, prefix)
        }
        path => match discovery::answer(server, path, header_text(parts, &header::ACCEPT)) {
            Some(answer) => Ok(answer),
            None => resource(server, parts, body),
        },
    };
    result.unwrap_or_else(|status| answer_status(&status))
}

fn header_text<'a>(parts: &'a Parts, name: &header::HeaderName) -> &'a str {
    parts
        .headers
        .get(name)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default()
}

fn resource(server: &ApiServer, parts: &Parts, body: &[u8]) -> Result<Answer, Status> {
    let path = parts.uri.path();
    let content_type = header_text(parts, &header::CONTENT_TYPE);
    if let Some(answer) = review::answer(&parts.method, path, content_type, body)? {
        return Ok(answer);
    }
    let target = server.with(|store| Target::parse(&store.kinds, path))?;
    let request = Request {
        server,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        shape: Shape::of(header_text(parts, &header::ACCEPT)),
        content_type,
        body,
        target,
    };
    match parts.method {
        Method::GET if request.target.subresource.is_empty() => request.read(),
        Method::GET => request.read_subresource(),
        Method::POST => request.post(),
        Method::PUT => request.put(),
        Method::PATCH => request.patch(),
        Method::DELETE => request.delete(),
        _ => Err(Status::method_not_allowed()),
    }
}

/// What a list or watch selects.
pub(super) fn selection(target: &Target, query: &Query) -> Result<Selection, Status> {
    let mut fields = query.get("fieldSelector").to_owned();
    if !target.name.is_empty() {
        if !fields.is_empty() {
            fields.push(',');
        }
        fields.push_str("metadata.name=");
        fields.push_str(&target.name);
    }
    Ok(Selection {
        namespace: (!target.namespace.is_empty()).then(|| target.namespace.clone()),
        labels: LabelSelector::parse(query.get("labelSelector"))?,
        fields: FieldSelector::parse(&fields)?,
    })
}

struct Request<'a> {
    server: &'a ApiServer,
    query: Query,
    shape: Shape,
    content_type: &'a str,
    body: &'a [u8],
    target: Target,
}

impl Request<'_> {
    fn key(&self) -> ObjectKey {
        let namespace = if self.target.kind.is_namespaced {
            self.target.namespace.as_str()
        } else {
            ""
        };
        ObjectKey::new(namespace, self.target.name.as_str())
    }

    fn options(&self) -> WriteOptions {
        let part = if self.target.subresource == "status" {
            Part::Status
        } else {
            Part::Main
        };
        let manager = self.query.get("fieldManager");
        WriteOptions {
            part,
            dry_run: self.query.is_dry_run(),
            field_manager: (!manager.is_empty()).then(|| manager.to_owned()),
            ..WriteOptions::default()
        }
    }

    /// The object in the body, JSON or YAML.
    fn object(&self) -> Result<Value, Status> {
        if self.content_type.contains("protobuf") {
            return protobuf::decode(self.body);
        }
        match serde_json::from_slice(self.body) {
            Ok(value) => Ok(value),
            Err(_) if self.content_type.contains("yaml") => serde_saphyr::from_slice(self.body)
                .map_err(|e| Status::bad_request(format!("error decoding the body: {e}"))),
            Err(error) => Err(Status::bad_request(format!(
                "error decoding the body: {error}"
            ))),
        }
    }

    /// Refuses or reports fields that the kind does not have, as `fieldValidation` asks.
    fn check_fields(&self, object: &Value) -> Result<Vec<String>, Status> {
        let kind = &self.target.kind;
        if let Some(problem) = unknown::mistyped(kind, object) {
            return Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {problem}",
                kind.kind, self.target.version, kind.kind
            )));
        }
        let mode = self.query.get("fieldValidation");
        if mode == "Ignore" || mode.is_empty() {
            return Ok(Vec::new());
        }
        let found = unknown::fields(&self.target.kind, &self.target.version, object);
        if mode == "Strict" && !found.is_empty() {
            let list = found.join(", ");
            return Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a \
                {}: strict decoding error: {list}",
                self.target.kind.kind, self.target.version, self.target.kind.kind
            )));
        }
        Ok(found)
    }

    fn answer_object(&self, code: u16, object: &Value, warnings: &[String]) -> Answer {
        let wire = self.target.kind.to_wire(object, &self.target.version);
        let mut answer = match self.shape {
            Shape::Full => answer_json(code, &*wire),
            Shape::Partial => answer_json(code, &table::partial(&wire)),
            Shape::Table => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                answer_json(code, &self.view().render(&[wire.as_ref()], &metadata))
            }
        };
        for warning in warnings {
            let text = format!("299 - {warning:?}");
            if let Ok(value) = header::HeaderValue::from_str(&text) {
                answer.headers_mut().append(header::WARNING, value);
            }
        }
        answer
    }

    fn view(&self) -> table::View<'_> {
        table::View {
            kind: &self.target.kind,
            version: &self.target.version,
            now: self.server.with(|store| store.now()),
            include_object: self.query.get("includeObject"),
        }
    }

    fn read(&self) -> Result<Answer, Status> {
        if self.query.is_true("watch") {
            return watch_stream::start(self.server, self.target.clone(), self.shape, &self.query);
        }
        if self.target.name.is_empty() {
            return self.list();
        }
        let key = self.key();
        let object = self
            .server
            .get(&self.target.kind.resource, &key.namespace, &key.name)?;
        Ok(self.answer_object(200, &object, &[]))
    }

    fn list(&self) -> Result<Answer, Status> {
        let selection = selection(&self.target, &self.query)?;
        let limit: usize = self.query.get("limit").parse().unwrap_or(0);
        let resume = Resume::decode(self.query.get("continue"))?;
        let resource = &self.target.kind.resource;
        let page = self.server.with(|store| -> Result<Page, Status> {
            let revision = match &resume {
                Some(resume) => {
                    store.check_remembered(resource, resume.revision)?;
                    resume.revision
                }
                None => store.revision(),
            };
            let after = resume.as_ref().map(|r| &r.after);
            let mut rest = store.iter_after(resource, &selection, after);
            let most = if limit == 0 { usize::MAX } else { limit };
            let taken: Vec<_> = rest.by_ref().take(most).collect();
            let remaining = rest.count();
            let last = taken.last().map(|(key, _)| (*key).clone());
            let items = taken
                .into_iter()
                .map(|(_, stored)| stored.value())
                .collect();
            Ok(Page {
                items,
                revision,
                remaining,
                last,
            })
        })?;
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if let (Some(after), true) = (page.last, page.remaining > 0) {
            metadata["continue"] = Resume {
                revision: page.revision,
                after,
            }
            .encode()
            .into();
            metadata["remainingItemCount"] = page.remaining.into();
        }
        Ok(self.answer_list(&page.items, &metadata))
    }

    fn answer_list(&self, items: &[Arc<Value>], metadata: &Value) -> Answer {
        let kind = &self.target.kind;
        let wire: Vec<_> = items
            .iter()
            .map(|o| kind.to_wire(o, &self.target.version))
            .collect();
        match self.shape {
            Shape::Table => {
                let rows: Vec<&Value> = wire.iter().map(AsRef::as_ref).collect();
                answer_json(200, &self.view().render(&rows, metadata))
            }
            Shape::Partial => {
                let items: Vec<Value> = wire.iter().map(|o| table::partial(o)).collect();
                answer_json(
                    200,
                    &json!({
                        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                        "metadata": metadata, "items": items,
                    }),
                )
            }
            Shape::Full => {
                // Written by hand, so that thousands of objects are not copied into one value first.
                let head = json!({
                    "kind": kind.list_kind, "apiVersion": kind.api_version(&self.target.version),
                    "metadata": metadata,
                });
                let mut bytes = head.to_string().into_bytes();
                bytes.pop();
                bytes.extend_from_slice(b",\"items\":[");
                for (at, object) in wire.iter().enumerate() {
                    if at > 0 {
                        bytes.push(b',');
                    }
                    // Writing JSON into memory does not fail.
                    let _ = serde_json::to_writer(&mut bytes, &**object);
                }
                bytes.extend_from_slice(b"]}");
                answer_bytes(200, "application/json", bytes)
            }
        }
    }

    fn read_subresource(&self) -> Result<Answer, Status> {
        let key = self.key();
        match self.target.subresource.as_str() {
            "status" if self.target.kind.has_status => self.read(),
            "scale" => {
                let scale = self
                    .server
                    .with(|store| scale::get(store, &self.target.kind, &key))?;
                Ok(answer_json(200, &scale))
            }
            "log" if self.target.kind.resource == Resource::PODS => {
                let pod = self
                    .server
                    .get(&Resource::PODS, &key.namespace, &key.name)?;
                let node = pod["spec"]["nodeName"].as_str().unwrap_or("no node");
                let text = format!("simulated pod {}/{} on {node}\n", key.namespace, key.name);
                Ok(answer_bytes(200, "text/plain", text.into_bytes()))
            }
            _ => Err(Status::no_such_resource()),
        }
    }

    fn post(&self) -> Result<Answer, Status> {
        let kind = &self.target.kind;
        match (self.target.name.as_str(), self.target.subresource.as_str()) {
            ("", _) => {
                let object = self.object()?;
                let warnings = self.check_fields(&object)?;
                let namespace = self.target.namespace.as_str();
                if kind.is_namespaced
                    && namespace.is_empty()
                    && object["metadata"]["namespace"].as_str().is_none()
                {
                    return Err(Status::bad_request(
                        "an empty namespace may not be set during creation",
                    ));
                }
                let options = self.options();
                let stored = self
                    .server
                    .with(|store| store.create(kind, namespace, object, &options))?;
                Ok(self.answer_object(201, &stored, &warnings))
            }
            (_, "binding") if kind.resource == Resource::PODS => {
                let binding = self.object()?;
                let node = binding["target"]["name"].as_str().unwrap_or_default();
                self.server
                    .with(|store| builtin::pod::bind(store, &self.key(), node))?;
                Ok(answer_success(201))
            }
            (_, "eviction") if kind.resource == Resource::PODS => {
                let eviction = self.object()?;
                let mut options = delete_options(&eviction["deleteOptions"])?;
                options.dry_run |= self.query.is_dry_run();
                self.server
                    .with(|store| eviction::evict(store, &self.key(), &options))?;
                Ok(answer_success(201))
            }
            (name, "token") if kind.resource == Resource::SERVICE_ACCOUNTS => {
                let now = self.server.with(|store| store.now());
                Ok(answer_json(201, &review::token(name, now)))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn put(&self) -> Result<Answer, Status> {
        let (kind, key, options) = (&self.target.kind, self.key(), self.options());
        if self.target.name.is_empty() {
            return Err(Status::method_not_allowed());
        }
        let object = self.object()?;
        match self.target.subresource.as_str() {
            "scale" => {
                let scale = self
                    .server
                    .with(|store| scale::set_from(store, kind, &key, &object, &options))?;
                Ok(answer_json(200, &scale))
            }
            "" | "status" | "finalize" | "approval" => {
                let warnings = self.check_fields(&object)?;
                let given = &object["metadata"]["resourceVersion"];
                if kind.is_custom() && given.as_str().is_none_or(str::is_empty) {
                    let error = super::status::FieldError::invalid(
                        "metadata.resourceVersion",
                        &json!(0),
                        "must be specified for an update",
                    );
                    return Err(Status::invalid(
                        &kind.group,
                        &kind.kind,
                        &key.name,
                        &[error],
                    ));
                }
                let stored = self
                    .server
                    .with(|store| store.update(kind, &key, object, &options))?;
                Ok(self.answer_object(200, &stored, &warnings))
            }
            _ => Err(Status::no_such_resource()),
        }
    }

    fn patch(&self) -> Result<Answer, Status> {
        let (kind, key, options) = (&self.target.kind, self.key(), self.options());
        let body = self.object()?;
        let patch = match self
            .content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
        {
            "application/json-patch+json" => Patch::Json(body),
            "application/merge-patch+json" => Patch::Merge(body),
            "application/strategic-merge-patch+json" => Patch::Strategic(body),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                if options.field_manager.is_none() {
                    return Err(Status::bad_request(
                        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: \
                         is required for apply patch",
                    ));
                }
                Patch::Apply {
                    intent: body,
                    is_forced: self.query.is_true("force"),
                }
            }
            other => return Err(Status::unsupported_media_type(other)),
        };
        if self.target.subresource == "scale" {
            return self.patch_scale(&patch, &options);
        }
        if !matches!(
            self.target.subresource.as_str(),
            "" | "status" | "ephemeralcontainers" | "resize"
        ) {
            return Err(Status::no_such_resource());
        }
        let warnings = match &patch {
            Patch::Json(_) => Vec::new(),
            Patch::Merge(value) | Patch::Strategic(value) | Patch::Apply { intent: value, .. } => {
                self.check_fields(value)?
            }
        };
        let existed = self
            .server
            .with(|store| store.contains(&kind.resource, &key));
        let stored = self
            .server
            .with(|store| patch::run(store, kind, &key, &patch, &options))?;
        Ok(self.answer_object(if existed { 200 } else { 201 }, &stored, &warnings))
    }

    fn patch_scale(&self, patch: &Patch, options: &WriteOptions) -> Result<Answer, Status> {
        let (kind, key) = (&self.target.kind, self.key());
        let replicas = match patch {
            Patch::Merge(value) | Patch::Strategic(value) | Patch::Apply { intent: value, .. } => {
                value["spec"]["replicas"].as_i64()
            }
            Patch::Json(operations) => operations
                .as_array()
                .into_iter()
                .flatten()
                .find(|o| o["path"].as_str() == Some("/spec/replicas"))
                .and_then(|o| o["value"].as_i64()),
        };
        let replicas =
            replicas.ok_or_else(|| Status::bad_request("the patch does not set spec.replicas"))?;
        let scale = self.server.with(|store| {
            let object = scale::set(store, kind, &key, replicas, options)?;
            scale::of(kind, &object)
        })?;
        Ok(answer_json(200, &scale))
    }

    fn delete(&self) -> Result<Answer, Status> {
        let body = if self.body.is_empty() {
            Value::Null
        } else {
            self.object()?
        };
        let mut options = delete_options(&body)?;
        options.dry_run |= self.query.is_dry_run();
        if let Ok(seconds) = self.query.get("gracePeriodSeconds").parse() {
            options.grace_period_seconds = Some(seconds);
        }
        match self.query.get("propagationPolicy") {
            "" => {}
            policy => options.propagation = propagation(policy)?,
        }
        let kind = &self.target.kind;
        if !self.target.subresource.is_empty() {
            return Err(Status::method_not_allowed());
        }
        if self.target.name.is_empty() {
            return self.delete_collection(&options);
        }
        let key = self.key();
        let (last, is_gone) = self.server.with(|store| {
            let last = store.delete(kind, &key, &options)?;
            Ok::<_, Status>((last, !store.contains(&kind.resource, &key)))
        })?;
        if !is_gone || kind.resource == Resource::PODS {
            return Ok(self.answer_object(200, &last, &[]));
        }
        Ok(answer_json(
            200,
            &json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {
                    "name": key.name, "group": kind.group, "kind": kind.resource.plural,
                    "uid": last["metadata"]["uid"],
                },
            }),
        ))
    }

    fn delete_collection(&self, options: &DeleteOptions) -> Result<Answer, Status> {
        let selection = selection(&self.target, &self.query)?;
        let kind = &self.target.kind;
        let deleted = self.server.with(|store| {
            let chosen: Vec<ObjectKey> = store
                .iter_after(&kind.resource, &selection, None)
                .map(|(key, _)| key.clone())
                .collect();
            // An object that went with an earlier one of the list is deleted, too.
            chosen
                .iter()
                .filter_map(|key| store.delete(kind, key, options).ok())
                .collect::<Vec<_>>()
        });
        let metadata = json!({"resourceVersion": self.server.revision().to_string()});
        Ok(self.answer_list(&deleted, &metadata))
    }
}

fn answer_success(code: u16) -> Answer {
    answer_json(
        code,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code,
        }),
    )
}

fn propagation(policy: &str) -> Result<Propagation, Status> {
    match policy {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => Err(Status::bad_request(format!(
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \
             {other:?}: supported values: \"Background\", \"Foreground\", \"Orphan\""
        ))),
    }
}

fn delete_options(body: &Value) -> Result<DeleteOptions, Status> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut options = DeleteOptions {
        grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        propagation: Propagation::default(),
        dry_run: body["dryRun"]
            .as_array()
            .is_some_and(|list| !list.is_empty()),
    };
    if let Some(policy) = body["propagationPolicy"].as_str() {
        options.propagation = propagation(policy)?;
    } else if body["orphanDependents"].as_bool() == Some(true) {
        options.propagation = Propagation::Orphan;
    }
    Ok(options)
}

struct Page {
    items: Vec<Arc<Value>>,
    revision: u64,
    remaining: usize,
    last: Option<ObjectKey>,
}

/// Where a list continues. All pages carry the first one's revision, so that a watch from it misses nothing.
struct Resume {
    revision: u64,
    after: ObjectKey,
}

impl Resume {
    fn encode(&self) -> String {
        let token = json!([self.revision, self.after.namespace, self.after.name]).to_string();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token)
    }

    fn decode(text: &str) -> Result<Option<Self>, Status> {
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || Status::bad_request("continue key is not valid");
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| bad())?;
        let (revision, namespace, name): (u64, String, String) =
            serde_json::from_slice(&bytes).map_err(|_| bad())?;
        Ok(Some(Self {
            revision,
            after: ObjectKey::new(namespace, name),
        }))
    }
}
