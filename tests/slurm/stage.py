# SPDX-License-Identifier: Apache-2.0
"""A whole Slurm of one node: munge, MariaDB, slurmdbd, slurmctld and slurmd, in namespaces of its own.

`run` starts Python inside new mount, network, host name and cgroup namespaces; nothing here works outside of them. What is
written to /etc, /var and /run stays in memory. When Python ends, `run` ends all that is left in the cgroups.
"""

import os
import pathlib
import pwd
import signal
import socket
import subprocess

import harness

NODE = "node1"
USERS = {"ana": 2001, "ben": 2002}  # not in the machine's passwd: a site has a directory service
SOCKET = "/run/mysqld/mysqld.sock"

SLURM_CONF = """
ClusterName=loop
SlurmctldHost=node1(127.0.0.1)
SlurmctldPort=25817
SlurmdPort=25818
SrunPortRange=25820-25850
AuthType=auth/munge
SlurmUser=slurm
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile={logs}/slurmctld.log
SlurmdLogFile={logs}/slurmd.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup,task/affinity
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=task=1,energy=1
AcctGatherEnergyType=acct_gather_energy/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=25819
AccountingStorageTRES=gres/gpu
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PropagateResourceLimits=NONE
Prolog={source}/deploy/slurm/prolog.sh
Epilog={source}/deploy/slurm/epilog.sh
PrologFlags=Alloc,Contain
NodeName=node1 NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=500 Gres=gpu:2 State=UNKNOWN
PartitionName=short Nodes=node1 Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""
DBD_CONF = """
DbdHost=node1
DbdAddr=127.0.0.1
DbdPort=25819
AuthType=auth/munge
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct_db
LogFile={logs}/slurmdbd.log
PidFile=/run/slurm/slurmdbd.pid
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=yes\nConstrainDevices=yes\n"


class Failure(Exception):
    pass


def call(*command, user=None, seconds=harness.NET, text=None):
    """What it printed; an error with everything it said, if it failed."""
    words = [str(word) for word in command]
    if user is not None:
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, input=text or "", check=False)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(words)} did not end within {seconds} s") from None
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def wait_for(condition, what):
    """The condition's first truthy value. Commands that fail meanwhile are no error."""
    last = []

    def look():
        try:
            return condition()
        except Failure as failure:
            last[:] = [failure]
            return None

    try:
        return harness.wait_until(look, what)
    except AssertionError as error:
        raise Failure(f"{error}; {last[0] if last else ''}") from None


class Stage:
    def __init__(self):
        self.folder = pathlib.Path(os.environ["GPU_LEDGER_STAGE_FOLDER"])
        self.logs = self.folder / "logs"
        self.children = []

    def __enter__(self):
        if os.environ.get("GPU_LEDGER_STAGE_INSIDE") != "yes":
            raise Failure("start this through tests/slurm/run")
        try:
            self.build_node()
            self.start_daemons()
            return self
        except BaseException:
            self.show_logs()
            self.__exit__()
            raise

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.send_signal(signal.SIGKILL)
            child.wait()

    def show_logs(self):
        for log in sorted(self.logs.glob("*")) if self.logs.exists() else []:
            print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]))

    def build_node(self):
        call("mount", "-t", "tmpfs", "tmpfs", self.folder)
        self.logs.mkdir(mode=0o777)
        self.logs.chmod(0o777)
        for name in ("etc", "var"):
            upper, work = self.folder / f"{name}.upper", self.folder / f"{name}.work"
            upper.mkdir()
            work.mkdir()
            call("mount", "-t", "overlay", "-o", f"lowerdir=/{name},upperdir={upper},workdir={work}", "overlay", f"/{name}")
        for folder in ("/run", "/srv"):
            call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
        self.mount_cgroups()
        socket.sethostname(NODE)
        pathlib.Path("/etc/hosts").write_text(f"127.0.0.1 localhost {NODE}\n")
        call("ip", "link", "set", "lo", "up")
        # getaddrinfo() finds nothing for the daemons on a machine with loopback alone.
        call("ip", "link", "add", "stage0", "type", "bridge")
        call("ip", "address", "add", "10.99.1.1/24", "dev", "stage0")
        call("ip", "link", "set", "stage0", "up")
        with open("/etc/passwd", "a", encoding="utf-8") as passwd, open("/etc/group", "a", encoding="utf-8") as group:
            for user, uid in USERS.items():
                passwd.write(f"{user}:x:{uid}:{uid}::/srv:/bin/sh\n")
                group.write(f"{user}:x:{uid}:\n")
        for gpu in range(2):  # NVIDIA's number, and no device behind it: a job must not need it
            os.mknod(f"/srv/gpu{gpu}", 0o020666, os.makedev(195, gpu))

    def mount_cgroups(self):
        """Of this namespace: the groups of the stage are the roots."""
        kinds = {}
        for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind, options = line.split()[:4]
            if kind == "cgroup" and place.startswith("/sys/fs/cgroup/"):
                known = {"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "name=systemd"}
                kinds[pathlib.Path(place).name] = ",".join(each for each in options.split(",") if each in known)
        for place in [*kinds, "unified"]:
            subprocess.run(["umount", f"/sys/fs/cgroup/{place}"], capture_output=True, check=False)
        call("umount", "/sys/fs/cgroup")
        call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/sys/fs/cgroup")
        for place, options in kinds.items():
            os.mkdir(f"/sys/fs/cgroup/{place}")
            none = ["-o", "none," + options] if options.startswith("name=") else ["-o", options]
            call("mount", "-t", "cgroup", *none, "cgroup", f"/sys/fs/cgroup/{place}")

    def start(self, *command, user=None):
        words = [str(word) for word in command]
        if user is not None:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *words]
        with open(self.logs / f"{pathlib.Path(command[0]).name}.out", "ab") as log:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.children.append(child)
        return child

    def write_settings(self):
        source = os.environ["GPU_LEDGER_SOURCE"]
        etc = pathlib.Path("/etc/slurm")
        etc.mkdir(exist_ok=True)
        parts = {"logs": self.logs, "source": source, "cpus": os.cpu_count()}
        (etc / "slurm.conf").write_text(SLURM_CONF.format(**parts))
        (etc / "cgroup.conf").write_text(CGROUP_CONF)
        (etc / "gres.conf").write_text("Name=gpu File=/srv/gpu[0-1]\n")
        dbd = etc / "slurmdbd.conf"
        dbd.write_text(DBD_CONF.format(**parts))
        dbd.chmod(0o600)
        slurm = pwd.getpwnam("slurm").pw_uid
        os.chown(dbd, slurm, -1)
        for folder in ("/run/slurm", "/var/spool/slurmctld", "/var/spool/slurmd", "/var/log/slurm"):
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            os.chown(folder, slurm, -1)

    def start_munge(self):
        for folder in ("/run/munge", "/var/log/munge", "/var/lib/munge", "/etc/munge"):
            path = pathlib.Path(folder)
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755 if folder == "/run/munge" else 0o700)
            os.chown(path, pwd.getpwnam("munge").pw_uid, -1)
        key = pathlib.Path("/etc/munge/munge.key")
        key.unlink(missing_ok=True)
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        os.chown(key, pwd.getpwnam("munge").pw_uid, -1)
        self.start("munged", "--foreground", "--num-threads=2", user="munge")
        wait_for(lambda: call("munge", "-n"), "munge")

    def start_database(self):
        data = self.folder / "mysql"
        data.mkdir()
        pathlib.Path("/run/mysqld").mkdir()
        for folder in (data, "/run/mysqld"):
            os.chown(folder, pwd.getpwnam("mysql").pw_uid, -1)
        call("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db",
             "--auth-root-authentication-method=socket")
        self.start("mariadbd", "--no-defaults", "--skip-networking", f"--socket={SOCKET}", f"--datadir={data}", "--user=mysql",
                   "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0")
        sql = "CREATE DATABASE IF NOT EXISTS slurm_acct_db; CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED BY 'x'; " \
              "GRANT ALL ON slurm_acct_db.* TO slurm@localhost;"
        wait_for(lambda: call("mariadb", "--no-defaults", f"--socket={SOCKET}", "-e", sql) == "", "MariaDB")

    def start_daemons(self):
        self.write_settings()
        self.start_munge()
        self.start_database()
        self.start("slurmdbd", "-D", user="slurm")
        wait_for(lambda: call("sacctmgr", "-n", "list", "cluster", seconds=5) == "", "slurmdbd")
        call("sacctmgr", "-i", "add", "cluster", "loop")
        for user, account in (("ana", "physics"), ("ben", "chemistry")):
            call("sacctmgr", "-i", "add", "account", account)
            call("sacctmgr", "-i", "add", "user", user, f"account={account}")
        self.start("slurmctld", "-D", user="slurm")
        self.start("slurmd", "-D", "-N", NODE)
        wait_for(lambda: call("sinfo", "-h", "-o", "%T") == "idle", "an idle node")
