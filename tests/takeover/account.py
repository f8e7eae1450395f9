"""Runs moto's server with the account of tests/moto in it, for two autoscalers that take turns.

Its first line of output is the address; it lives until it is told to end. What it adds to moto: the security groups
that a launch template names, by which drift is judged and which moto's fleets pass over; and answers that come late, so
that an autoscaler can die before it learns of its instances.
"""

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "moto"))

import server  # noqa: E402  it sets what moto reads when it is loaded
from moto.ec2.models.fleets import Fleet  # noqa: E402

# While this file is there, fleets are bought and nobody is told.
LATE = os.environ["TAKEOVER_LATE"]


def mend_fleets():
    make = Fleet.__init__

    def made(self, backend, *arguments, **options):
        make(self, backend, *arguments, **options)
        bought = [(item["launch_spec"], item["instance"]) for item in self.on_demand_instances]
        bought += [(request.launch_spec, request.instance) for request in self.spot_requests]
        for specification, instance in bought:
            named = specification.launch_template_spec
            template = backend.get_launch_template(template_id=named["LaunchTemplateId"])
            data = template.get_version(named["Version"]).data
            interfaces = data.get("NetworkInterfaces") or [{}]
            groups = data.get("SecurityGroupIds") or interfaces[0].get("Groups") or []
            backend.modify_instance_security_groups(instance.id, groups)
        while os.path.exists(LATE):
            time.sleep(0.2)

    Fleet.__init__ = made


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    mend_fleets()
    moto = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    account = server.Account(f"http://{host}:{port}")
    account.furnish()
    print(account.endpoint, file=answers, flush=True)
    signal.pause()


main()
