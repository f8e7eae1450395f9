//! Taking over from who led before, when that fails and when it takes its time.

use std::convert::Infallible;

use api_server::{ApiServer, Resource, ResponseBody};
use controllers::Settings;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use jiff::SignedDuration;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use sim::SimulatedClock;
use tower::{Service as _, service_fn};

use super::*;
use crate::simulated_nodes::{Practice, SimulatedNodes};
use crate::stack::{StackConfig, simulated_provider};

const NAMESPACE: &str = "kube-system";

/// How a cluster answers who lists its NodeClaims.
#[derive(Debug, Clone, Copy)]
enum ListAnswer {
    Refused,
    Unanswered,
}

/// A replica whose cluster lists no NodeClaims.
struct WouldBeLeader {
    api: ApiServer,
    clock: SimulatedClock,
    election: Election,
    stack: Stack,
    background: BackgroundTask,
}

impl WouldBeLeader {
    fn new(lists: ListAnswer) -> Self {
        let simulated = SimulatedClock::virtual_time();
        let api = ApiServer::new(1, Arc::new(move || simulated.now()));
        let client = client(&api, lists);
        let nodes =
            SimulatedNodes::new(client.clone(), "blue", Practice::default(), simulated.now());
        let clock: Arc<dyn Clock> = Arc::new(simulated);
        let stack = Stack::new(StackConfig {
            client: client.clone(),
            provider: simulated_provider(nodes.ec2(), "blue", Arc::clone(&clock)),
            clock: Arc::clone(&clock),
            settings: Settings::default(),
            interruptions: None,
            policy_limits: policy::Limits::default(),
            stands_by: true,
        });
        let election = Election::new(LeaderElector {
            leases: Api::namespaced(client, NAMESPACE),
            lease_name: "lead".to_owned(),
            identity: "a".to_owned(),
            clock,
            fence: Fence::closed(),
            slow_renewals: Counter::default(),
        });
        Self {
            api,
            clock: simulated,
            election,
            stack: stack.unwrap(),
            background: BackgroundTask::Nodes(Box::new(nodes)),
        }
    }

    async fn live_for(&self, seconds: u64) -> Option<anyhow::Result<()>> {
        let living = live(Some(&self.election), &self.stack, &self.background);
        let lived = tokio::time::timeout(Duration::from_secs(seconds), living).await;
        lived.ok()
    }

    /// A field of the lease, which somebody has taken.
    fn of_lease(&self, field: &str) -> Value {
        let lease = self.api.get(&Resource::LEASES, NAMESPACE, "lead").unwrap();
        lease["spec"][field].clone()
    }
}

fn client(api: &ApiServer, lists: ListAnswer) -> Client {
    let api = api.clone();
    let service = service_fn(move |request: Request<Body>| {
        let mut api = api.clone();
        async move {
            if !request.uri().path().ends_with("/nodeclaims") {
                return api.call(request).await;
            }
            match lists {
                ListAnswer::Refused => Ok::<_, Infallible>(refusal()),
                ListAnswer::Unanswered => std::future::pending().await,
            }
        }
    });
    Client::new(service, "default")
}

fn refusal() -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::new(Full::from("etcd has no leader")));
    *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    answer
}

#[tokio::test(start_paused = true)]
async fn who_cannot_take_over_ends_and_gives_the_lease_back() {
    let replica = WouldBeLeader::new(ListAnswer::Refused);
    let ended = replica.live_for(30).await.expect("it ends");
    let why = format!("{:#}", ended.unwrap_err());
    assert!(why.contains("cannot be listed"), "{why}");
    assert!(!replica.stack.controllers.leads());
    assert_eq!(replica.of_lease("holderIdentity"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_for_as_long_as_to_take_over_takes() {
    let replica = WouldBeLeader::new(ListAnswer::Unanswered);
    let ended = replica.live_for(60).await;
    assert!(ended.is_none(), "{ended:?}");
    assert!(!replica.stack.controllers.leads());
    let renewed = replica.of_lease("renewTime").as_str().unwrap().to_owned();
    let age = replica.clock.now().duration_since(renewed.parse().unwrap());
    assert!(age <= SignedDuration::from_secs(3), "{age}");
}
