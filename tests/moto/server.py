"""Runs moto's server with an account in it, for the tests beside this file.

The first line of output is JSON: the address and what the account has. Then each line of input asks one thing of it
through boto3, an SDK that is not ours, and is answered by one line. The process ends with its input.
"""

import base64
import json
import os
import sys
import tempfile

# Where moto writes what it was asked; it must be known before moto is loaded.
RECORDING = os.path.join(tempfile.mkdtemp(prefix="mortise-moto-"), "recording")
os.environ["MOTO_RECORDER_FILEPATH"] = RECORDING
# moto's own data has the types of one region alone; this one spares a test the load of thirteen hundred images.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
# Policies that AWS has for everybody, so that a role can be given them.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

import boto3  # noqa: E402
from moto.core import DEFAULT_ACCOUNT_ID  # noqa: E402
from moto.ec2.models import ec2_backends  # noqa: E402
from moto.iam.models import ManagedPolicy  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402
from moto.ssm.models import Parameter, ssm_backends  # noqa: E402

REGION = "us-east-1"
CLUSTER = "demo"
KUBERNETES_VERSION = "1.33"
ALL = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


class Account:
    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.credentials = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}

    def client(self, service):
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint, **self.credentials)

    def user(self, name, policy):
        """A user with one policy, as [key id, secret]."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return [key["AccessKeyId"], key["SecretAccessKey"]]

    def furnish(self):
        """What whoever sets up a cluster makes: a network, images, a role, a queue and the cluster itself."""
        ec2 = self.client("ec2")
        tags = [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]

        def tagged(kind):
            return [{"ResourceType": kind, "Tags": tags}]

        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(
                VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=REGION + zone, TagSpecifications=tagged("subnet")
            )["Subnet"]["SubnetId"]
            for i, zone in enumerate("ab")
        ]
        group = ec2.create_security_group(
            VpcId=vpc, GroupName="nodes", Description="nodes", TagSpecifications=tagged("security-group")
        )["GroupId"]
        images = {arch: self.image(ec2, arch, tags) for arch in ("x86_64", "arm64")}
        role = {"Version": "2012-10-17", "Statement": []}
        arn = self.client("iam").create_role(RoleName="node-role", AssumeRolePolicyDocument=json.dumps(role))["Role"]["Arn"]
        self.client("sqs").create_queue(QueueName="interruptions")
        self.client("ssm").put_parameter(Name="/golden/image", Value=images["x86_64"], Type="String")
        cluster = self.client("eks").create_cluster(
            name=CLUSTER,
            version=KUBERNETES_VERSION,
            roleArn=arn,
            resourcesVpcConfig={"subnetIds": subnets},
            kubernetesNetworkConfig={"serviceIpv4Cidr": "10.100.0.0/16"},
        )["cluster"]
        return {
            "region": REGION,
            "cluster": {key: cluster[key] for key in ("name", "arn", "endpoint", "version")},
            "subnets": subnets,
            "security_group": group,
            "images": images,
        }

    def image(self, ec2, architecture, tags):
        """An image of the account, which the parameters of AL2023 lead to."""
        image = ec2.register_image(
            Name=f"node-{architecture}", Architecture=architecture, RootDeviceName="/dev/xvda", VirtualizationType="hvm"
        )["ImageId"]
        # moto forgets the architecture of a registered image, without which it is none.
        ec2_backends[DEFAULT_ACCOUNT_ID][REGION].amis[image].architecture = architecture
        ec2.create_tags(Resources=[image], Tags=tags)
        publish(f"/aws/service/eks/optimized-ami/{KUBERNETES_VERSION}/amazon-linux-2023/{architecture}/standard/recommended/image_id", image)
        return image


def publish(name, value):
    """A parameter of AWS' own; moto has none for EKS, and nobody may put them through the API."""
    parameters = ssm_backends[DEFAULT_ACCOUNT_ID][REGION]._parameters
    parameters[name].append(
        Parameter(DEFAULT_ACCOUNT_ID, name, value, "String", None, None, None, 0.0, 1, data_type="text")
    )


def take_documents_as_texts():
    """CloudFormation takes the document of a policy as an object or as the text of one; moto the object alone."""
    create = ManagedPolicy.create_from_cloudformation_json.__func__

    def of_text(cls, resource_name, cloudformation_json, *arguments, **options):
        properties = cloudformation_json["Properties"]
        if isinstance(properties["PolicyDocument"], str):
            properties["PolicyDocument"] = json.loads(properties["PolicyDocument"])
        return create(cls, resource_name, cloudformation_json, *arguments, **options)

    ManagedPolicy.create_from_cloudformation_json = classmethod(of_text)


def asked():
    """What moto was asked since it began to record: lines of [signed for service, operation or path]."""
    lines = []
    if not os.path.exists(RECORDING):
        return lines
    for line in open(RECORDING, encoding="utf-8"):
        entry = json.loads(line)
        headers = {key.lower(): value for key, value in entry["headers"].items()}
        scope = headers.get("authorization", "").partition("Credential=")[2].split(",")[0].split("/")
        body = base64.b64decode(entry["body"]) if entry["body_encoded"] else (entry["body"] or "").encode()
        form = dict(pair.partition("=")[::2] for pair in body.decode("utf-8", "replace").split("&"))
        path = entry["method"] + " " + entry["url"].split("/", 3)[3].split("?")[0]
        operation = headers.get("x-amz-target", "").rpartition(".")[2] or form.get("Action") or path
        if len(scope) > 3:
            service = scope[3]
        else:
            service = "sts" if "Action" in form else "imds"
        if service == "eks" and operation == "GET clusters/" + CLUSTER:
            operation = "DescribeCluster"
        lines.append([service, operation, form.get("DryRun") == "true", headers.get("user-agent", "")])
    return lines


def main():
    # moto prints to standard output, which is the answers' alone.
    answers, sys.stdout = sys.stdout, sys.stderr
    take_documents_as_texts()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    account = Account(f"http://{host}:{port}")
    import requests  # a dependency of moto's

    made = account.furnish()
    requests.post(account.endpoint + "/moto-api/recorder/start-recording", timeout=10)
    print(json.dumps({"endpoint": account.endpoint, **made}), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "service" in question:
                client = account.client(question["service"])
                answer = getattr(client, question["operation"])(**question.get("arguments", {}))
                answer.pop("ResponseMetadata", None)
            elif "deny" in question:
                # From now on moto asks of every request who sent it and whether they may.
                account.credentials = dict(zip(account.credentials, account.user("admin", ALL)))
                policy = {"Effect": "Deny", "Action": question["deny"], "Resource": "*"}
                statements = {"Version": "2012-10-17", "Statement": [json.loads(ALL)["Statement"][0], policy]}
                answer = account.user("controller", json.dumps(statements))
                requests.post(account.endpoint + "/moto-api/reset-auth", data=b"0", timeout=10)
            else:
                answer = asked()
        except Exception as error:  # noqa: BLE001  the test says what it makes of it
            answer = {"error": str(error)}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
