//! The real SDK against a server that counts what arrives.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aws_config::Region;
use aws_sdk_ec2::config::Credentials;
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::operation::create_launch_template::CreateLaunchTemplateInput;
use aws_sdk_ec2::operation::create_tags::CreateTagsInput;
use aws_sdk_ec2::operation::delete_launch_template::DeleteLaunchTemplateInput;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesInput;
use aws_sdk_ec2::operation::reboot_instances::RebootInstancesInput;
use aws_sdk_ec2::operation::terminate_instances::TerminateInstancesInput;
use aws_sdk_ec2::types::TargetCapacitySpecificationRequest;
use aws_sdk_iam::operation::add_role_to_instance_profile::AddRoleToInstanceProfileInput;
use aws_sdk_iam::operation::create_instance_profile::CreateInstanceProfileInput;
use aws_sdk_iam::operation::delete_instance_profile::DeleteInstanceProfileInput;
use aws_sdk_iam::operation::remove_role_from_instance_profile::RemoveRoleFromInstanceProfileInput;
use futures::future::{BoxFuture, FutureExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::sdk::SdkClients;
use crate::seam::CODE_TRANSPORT;
use crate::seam::{Ec2Api as _, IamApi as _, SqsApi as _};

/// Fails every request, which the SDK repeats.
struct Server {
    arrived: Arc<AtomicUsize>,
    clients: SdkClients,
    is_leading: Arc<AtomicBool>,
}

impl Server {
    /// The lease lapses once so many requests have arrived.
    async fn new(lapses_after: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let arrived = Arc::<AtomicUsize>::default();
        let is_leading = Arc::new(AtomicBool::new(lapses_after > 0));
        let (count, leads) = (Arc::clone(&arrived), Arc::clone(&is_leading));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::with_capacity(64 * 1024);
                while !is_whole(&request) && stream.read_buf(&mut request).await.unwrap_or(0) > 0 {}
                if count.fetch_add(1, Ordering::SeqCst) + 1 >= lapses_after {
                    leads.store(false, Ordering::SeqCst);
                }
                let answer = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.ok();
            }
        });
        let config = SdkClients::loader()
            .endpoint_url(endpoint)
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "tests"))
            .load()
            .await;
        let seen = Arc::clone(&is_leading);
        let clients = SdkClients::of(&config).while_so(move || seen.load(Ordering::SeqCst));
        Self {
            arrived,
            clients,
            is_leading,
        }
    }

    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }
}

/// Whether the head of a request has ended: its body is of no interest.
fn is_whole(request: &[u8]) -> bool {
    request.windows(4).any(|it| it == b"\r\n\r\n")
}

/// Every call that changes something, with its answer thrown away.
fn changes(aws: &SdkClients) -> Vec<(&'static str, BoxFuture<'_, ApiResult<()>>)> {
    macro_rules! calls {
        ($($operation:ident($input:expr)),+ $(,)?) => {
            vec![$((
                stringify!($operation),
                async move { aws.$operation($input.build().unwrap()).await.map(drop) }.boxed(),
            )),+]
        };
    }
    let capacity = TargetCapacitySpecificationRequest::builder().total_target_capacity(1);
    let mut calls = calls![
        create_fleet(CreateFleetInput::builder().target_capacity_specification(capacity.build())),
        create_launch_template(CreateLaunchTemplateInput::builder().launch_template_name("a")),
        delete_launch_template(DeleteLaunchTemplateInput::builder().launch_template_name("a")),
        create_tags(CreateTagsInput::builder().resources("i-1")),
        reboot_instances(RebootInstancesInput::builder().instance_ids("i-1")),
        terminate_instances(TerminateInstancesInput::builder().instance_ids("i-1")),
        create_instance_profile(CreateInstanceProfileInput::builder().instance_profile_name("a")),
        add_role_to_instance_profile(
            AddRoleToInstanceProfileInput::builder()
                .instance_profile_name("a")
                .role_name("r")
        ),
        remove_role_from_instance_profile(
            RemoveRoleFromInstanceProfileInput::builder()
                .instance_profile_name("a")
                .role_name("r")
        ),
        delete_instance_profile(DeleteInstanceProfileInput::builder().instance_profile_name("a")),
    ];
    let queue = "http://127.0.0.1/q";
    calls.push((
        "receive",
        async move { aws.receive(queue).await.map(drop) }.boxed(),
    ));
    calls.push((
        "delete",
        async move { aws.delete(queue, "receipt").await }.boxed(),
    ));
    calls
}

#[tokio::test]
async fn who_does_not_hold_the_lease_changes_nothing_and_may_look() {
    let server = Server::new(0).await;
    for (name, call) in changes(&server.clients) {
        let error = call.await.unwrap_err();
        assert!(error.message.contains("lease"), "{name}: {error}");
        assert_eq!(error.code, CODE_TRANSPORT);
    }
    assert_eq!(server.arrived(), 0);
    let look = DescribeInstancesInput::builder().build().unwrap();
    let answer = server.clients.describe_instances(look).await.unwrap_err();
    assert_ne!(answer.code, CODE_TRANSPORT);
    let arrived = server.arrived();
    assert!(arrived > 0);
    let try_it = CreateTagsInput::builder().resources("i-1").dry_run(true);
    server
        .clients
        .create_tags(try_it.build().unwrap())
        .await
        .unwrap_err();
    assert!(server.arrived() > arrived, "a dry run changes nothing");
}

#[tokio::test]
async fn a_change_is_not_sent_again_once_the_lease_has_lapsed() {
    let closed = Server::new(0).await;
    let names: Vec<&str> = changes(&closed.clients)
        .into_iter()
        .map(|it| it.0)
        .collect();
    for (number, name) in names.into_iter().enumerate() {
        let server = Server::new(1).await;
        let (_, call) = changes(&server.clients).swap_remove(number);
        let error = call.await.unwrap_err();
        assert!(!server.is_leading.load(Ordering::SeqCst), "{name}");
        assert_eq!(
            (server.arrived(), error.code.as_str()),
            (1, CODE_TRANSPORT),
            "{name}: {error}"
        );
    }
}
