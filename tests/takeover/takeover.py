"""Karpenter's own binary leaves a cluster half-way through its work, Mortise takes over, and Karpenter comes back.

    takeover.py NAME=KARPENTER:CRDS --mortise FILE --out FOLDER

Needs a control plane with kwok (KUBECONFIG) that has nothing in it, and moto's python. Prints what came
of each of the two takeovers, and keeps it in rows.json.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import boto3

from kubelets import GROUPS, Api, Kubelets

HERE = Path(__file__).resolve().parent
WAITING = ["guarded", "volume", "slow", "rolling", "burst"]
# Those of them that are bought as spot, beside the nodes at rest.
SPOT = ["slow", "rolling", "burst"]
QUIET_SECONDS = int(os.environ.get("TAKEOVER_QUIET_SECONDS", "75"))


def kubectl(*arguments, text=None):
    subprocess.run(["kubectl", *arguments], input=text, text=True, check=True, stdout=subprocess.DEVNULL)


class Controller:
    """A process that is started again whenever it ends by itself, as a kubelet does it: after a lost lease, say."""

    def __init__(self, command, environment, log):
        self.command, self.environment, self.log = command, environment, open(log, "w")
        self.is_wanted, self.starts = True, 0
        self.lock = threading.Lock()
        self.start()
        threading.Thread(target=self.keep, daemon=True).start()

    def start(self):
        self.starts += 1
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, env=self.environment)

    def keep(self):
        while self.is_wanted:
            time.sleep(1)
            with self.lock:
                if self.is_wanted and self.process.poll() is not None:
                    self.start()

    def stop(self, number):
        with self.lock:
            self.is_wanted = False
            self.process.send_signal(number)
            return self.process.wait(60)


class World:
    def __init__(self, out):
        self.out = out
        self.late = out / "late"
        self.late.unlink(missing_ok=True)
        environment = {**os.environ, "TAKEOVER_LATE": str(self.late)}
        log = open(out / "moto.log", "w")
        account = [sys.executable, str(HERE / "account.py")]
        self.moto = subprocess.Popen(account, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self.endpoint = self.moto.stdout.readline().strip()
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        self.ec2 = boto3.client("ec2", region_name="us-east-1", endpoint_url=self.endpoint, **keys)
        self.api = Api()
        self.kubelets = Kubelets(self.api)
        self.controllers = []

    def end(self):
        for controller in self.controllers:
            controller.stop(signal.SIGKILL)
        self.api.proxy.kill()
        self.moto.kill()

    def run(self, program, *arguments):
        """A controller with the settings of a Karpenter's Deployment; both are given the same."""
        settings = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "CLUSTER_NAME": "demo",
            "CLUSTER_ENDPOINT": "https://demo.example",
            "EKS_CONTROL_PLANE": "true",
            # moto takes the dry run of a fleet for a fleet, and has no prices.
            "DISABLE_DRY_RUN": "true",
            "ISOLATED_VPC": "true",
            "INTERRUPTION_QUEUE": "interruptions",
            "FEATURE_GATES": "NodeRepair=true,StaticCapacity=true",
            "LEADER_ELECTION_NAMESPACE": "kube-system",
            "SYSTEM_NAMESPACE": "kube-system",
            "KUBERNETES_MIN_VERSION": "1.19.0-0",
            "METRICS_PORT": os.environ.get("TP_KARP_METRICS", "26080"),
            "HEALTH_PROBE_PORT": os.environ.get("TP_KARP_HEALTH", "26081"),
        }
        log = self.out / f"{len(self.controllers) + 1}-{Path(program).name}.log"
        self.controllers.append(Controller([program, *arguments], {**os.environ, **settings}, log))
        return self.controllers[-1]

    def instances(self, *states):
        """Those in one of the states, or all that ever were."""
        pages = self.ec2.get_paginator("describe_instances").paginate()
        found = [it for page in pages for reservation in page["Reservations"] for it in reservation["Instances"]]
        return {it["InstanceId"] for it in found if not states or it["State"]["Name"] in states}

    def look(self, name):
        """All that the two hand to each other, kept for whoever wants to read it."""
        state = {what: self.api.list(what) for what in GROUPS}
        state["instances"] = sorted(self.instances("running"))
        state["bought"] = sorted(self.instances())
        (self.out / f"{name}.json").write_text(json.dumps(state, indent=1))
        return state

    def claims(self, pool):
        return [it for it in self.api.list("nodeclaims") if pool_of(it) == pool]

    def until(self, what, holds, seconds=240):
        end = time.time() + seconds
        while time.time() < end:
            if holds():
                return True
            time.sleep(1)
        print(f"  not within {seconds} s: {what}", flush=True)
        return False


def pool_of(it):
    return it["metadata"].get("labels", {}).get("karpenter.sh/nodepool")


def going(it):
    return "deletionTimestamp" in it["metadata"]


def condition(it, kind):
    for each in it.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each["status"]
    return ""


def instance_of(claim):
    return claim.get("status", {}).get("providerID", "").rpartition("/")[2]


def pods_run(world, app=None):
    pods = [it for it in world.api.list("pods") if app in (None, it["metadata"]["labels"]["app"])]
    deployments = [it for it in world.api.list("deployments") if app in (None, it["metadata"]["name"])]
    wanted = sum(it["spec"]["replicas"] for it in deployments)
    running = [it for it in pods if it["status"].get("phase") == "Running" and not going(it)]
    return len(running) == wanted


def settled(world, pool):
    claims = world.claims(pool)
    return pods_run(world, pool) and all(condition(it, "Initialized") == "True" for it in claims)


def leave_half_done(world, turn, killed):
    """Things that whoever comes next has to go on with: the claims that are to end, by name, and why each of them."""
    api, ends = world.api, {}

    def launched(pool, number):
        claims = world.claims(pool)
        return len(claims) >= number and all(condition(it, "Launched") == "True" for it in claims)

    if not any(it["metadata"]["name"] == "guarded" for it in api.list("poddisruptionbudgets")):
        budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}}
        api.create("poddisruptionbudgets", {"metadata": {"name": "guarded"}, "spec": budget})
    # A replacement that is awaited before the old node may go; first, or the same command buys for all pods that wait.
    world.kubelets.held |= {"slow", "rolling"}
    claim = world.claims("rolling")[0]
    ends[claim["metadata"]["name"]] = "rolling"
    api.patch("nodepools", "rolling", {"spec": {"template": {"metadata": {"labels": {"turn": f"t{turn}"}}}}})
    world.until("a replacement is awaited", lambda: launched("rolling", 2))
    # A drain that a budget holds up. Nobody buys for pods that cannot leave, so there is a node to spare.
    for replicas in (3, 2):
        api.patch("deployments", "guarded", {"spec": {"replicas": replicas}})
        world.until(f"{replicas} guarded pods", lambda: settled(world, "guarded"))
    used = {it["spec"].get("nodeName") for it in api.list("pods")}
    claim = next(it for it in world.claims("guarded") if it["status"]["nodeName"] in used)
    ends[claim["metadata"]["name"]] = "guarded"
    api.delete("nodeclaims", claim["metadata"]["name"])
    # A node whose pods are gone and whose volume is still attached.
    claim = world.claims("volume")[0]
    ends[claim["metadata"]["name"]] = "volume"
    source = {"persistentVolumeName": "data"}
    attachment = {"attacher": "ebs.csi.aws.com", "nodeName": claim["status"]["nodeName"], "source": source}
    api.create("volumeattachments", {"metadata": {"name": "data"}, "spec": attachment})
    api.delete("nodes", claim["status"]["nodeName"])
    # An instance that has not joined.
    api.patch("deployments", "slow", {"spec": {"replicas": turn + 1}})
    world.until("the pod left its volume's node", lambda: launched("volume", 2) and pods_run(world, "volume"))
    world.until("an instance is awaited", lambda: launched("slow", turn + 1))
    live = lambda: [it for it in world.claims("volume") if not going(it)]  # noqa: E731
    world.until("the new node is ready", lambda: all(condition(it, "Initialized") == "True" for it in live()))
    if killed:
        # Instances that were bought by somebody who died before the answer came.
        before = world.instances()
        world.late.touch()
        api.patch("deployments", "burst", {"spec": {"replicas": 4}})
        world.until("instances are bought", lambda: len(world.instances()) >= len(before) + 4)
    return ends


def let_go(world):
    world.api.delete("poddisruptionbudgets", "guarded")
    world.api.delete("volumeattachments", "data")
    world.kubelets.held.clear()


def stop(world, controller, killed):
    code = controller.stop(signal.SIGKILL if killed else signal.SIGTERM)
    time.sleep(2)
    world.late.unlink(missing_ok=True)
    time.sleep(1)
    return f"{code} after {controller.starts} starts"


def hand_over(world, name, ends, start):
    """Starts who comes next; what became of the cluster while nothing had to happen, and afterwards."""
    before = world.look(f"{name}-left")
    controller = start()
    time.sleep(QUIET_SECONDS)
    quiet = world.look(f"{name}-quiet")
    let_go(world)

    def done():
        left = {it["metadata"]["name"] for it in world.api.list("nodeclaims")}
        return [it for it in ends if it not in left]

    world.until("what was half done is done", lambda: len(done()) == len(ends) and pods_run(world))
    time.sleep(20)
    after = world.look(f"{name}-after")
    row = compare(before, quiet, after, ends)
    row["done"] = f"{len(done())} of {len(ends)}"
    row["pods missing"] = 0 if pods_run(world) else "some"
    joined = [it for it in after["nodeclaims"] if condition(it, "Initialized") == "True"]
    row["joined"] = f"{len(joined)} of {len(after['nodeclaims'])}"
    return controller, row


def compare(before, quiet, after, ends):
    names = lambda state: {it["metadata"]["name"]: it for it in state["nodeclaims"]}  # noqa: E731
    old, drifted = names(before), set()
    for state in (quiet, after):
        drifted |= {n for n, it in names(state).items() if condition(it, "Drifted") == "True" and n not in ends}
    made = (set(names(quiet)) | set(names(after))) - set(old)
    launched = set(after["bought"]) - set(before["bought"])
    may_end = {instance_of(old[it]) for it in ends}
    lost = set(before["instances"]) - set(after["instances"]) - may_end
    leaving = {old[it]["status"]["nodeName"] for it in ends}
    uids = lambda state: {it["metadata"]["uid"]: it for it in state["pods"]}  # noqa: E731
    gone = [it for uid, it in uids(before).items() if uid not in uids(after) or going(uids(after)[uid])]
    evicted = [it["metadata"]["name"] for it in gone if it["spec"].get("nodeName") not in leaving]
    details = {"drifted": drifted, "made": made, "launched": launched, "lost": lost, "evicted": evicted}
    details = {key: sorted(names) for key, names in details.items()}
    counts = {key: len(value) for key, value in details.items()}
    return {"nodes": len(before["nodes"]), "claims": len(before["nodeclaims"]), **counts, "details": details}


def matrix_row(world, version, karpenter, definitions, mortise, killed):
    rows = {}
    define = ["apply", "--server-side", "--force-conflicts", "-f"]
    kubectl(*define, definitions)
    kubectl("wait", "--for=condition=Established", "crds", "--all")
    controller = world.run(karpenter)
    kubectl("apply", "-f", str(HERE / "world.yaml"))
    for pool in WAITING:
        replicas = {"guarded": "2", "burst": "0"}.get(pool, "1")
        capacity = "spot" if pool in SPOT else "on-demand"
        text = (HERE / "pool.yaml").read_text().replace("NAME", pool)
        text = text.replace("REPLICAS", replicas).replace("CAPACITY", capacity)
        kubectl("apply", "-f", "-", text=text)
    ready = lambda: pods_run(world) and all(settled(world, it) for it in ["web", "fixed", *WAITING])  # noqa: E731
    if not world.until("the world stands", ready, 300):
        raise SystemExit("nothing to take over")
    # Consolidation has its say before, so that nothing is left for it to do.
    time.sleep(30)
    ends = leave_half_done(world, 1, killed)
    print(f"{version}: Karpenter ended with {stop(world, controller, killed)}", flush=True)
    text = subprocess.run([mortise, "crds"], capture_output=True, text=True, check=True).stdout
    kubectl(*define, "-", text=text)
    start = lambda: world.run(mortise, "controller", "--cloud=aws")  # noqa: E731
    controller, rows["there"] = hand_over(world, f"{version}-there", ends, start)
    print(f"{version} there: {json.dumps(rows['there'])}", flush=True)
    ends = leave_half_done(world, 2, False)
    print(f"{version}: Mortise ended with {stop(world, controller, not killed)}", flush=True)
    kubectl(*define, definitions)
    controller, rows["back"] = hand_over(world, f"{version}-back", ends, lambda: world.run(karpenter))
    print(f"{version} back: {json.dumps(rows['back'])}", flush=True)
    clear(world)
    stop(world, controller, False)
    return rows


def clear(world):
    """Karpenter takes away what is left, so that nothing is lost and the next one finds nothing."""
    kubectl("delete", "deployments,nodepools", "--all", "--wait=false")
    world.until("all nodes are gone", lambda: not world.api.list("nodeclaims") and not world.instances("running"))
    kubectl("delete", "ec2nodeclasses", "--all")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser()
    parser.add_argument("version", help="NAME=KARPENTER:CRDS, the binary and the folder of its definitions")
    parser.add_argument("--mortise", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--kill", action="store_true", help="end Karpenter without a warning, and Mortise with one")
    arguments = parser.parse_args()
    version, _, rest = arguments.version.partition("=")
    karpenter, _, definitions = rest.partition(":")
    arguments.out.mkdir(parents=True, exist_ok=True)
    world = World(arguments.out)
    try:
        rows = matrix_row(world, version, karpenter, definitions, arguments.mortise, arguments.kill)
        (arguments.out / "rows.json").write_text(json.dumps({version: rows}, indent=1))
    finally:
        world.end()


main()
