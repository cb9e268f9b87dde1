# SPDX-License-Identifier: Apache-2.0
"""Real NVML clients read the simulated driver: nvidia-ml-py every part of it, nvtop, nvitop and gpustat as users do.

They are looked for in GPU_LEDGER_PARTS (filled by tools/fetch_nvml_clients.sh), else on the system
(PYNVML_DIR, NVTOP). A given directory that cannot be used is a failure; none at all skips, saying so.
"""
import ctypes
import fcntl
import glob
import json
import math
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

SIM = os.environ["GPU_LEDGER_SIM"]
PARTS = os.environ.get("GPU_LEDGER_PARTS", "")
NET = 120  # seconds: what takes longer hangs
HAVE_PARTS = bool(PARTS) and os.path.isdir(PARTS)

# The loader reads LD_LIBRARY_PATH only when a program starts.
if os.environ.get("LD_LIBRARY_PATH", "").split(":")[0] != SIM:
    os.environ["LD_LIBRARY_PATH"] = SIM + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.execv(sys.executable, [sys.executable, "-B"] + sys.argv)

if HAVE_PARTS:
    sys.path.insert(0, os.path.join(PARTS, "pynvml"))
elif os.environ.get("PYNVML_DIR"):
    sys.path.insert(0, os.environ["PYNVML_DIR"])
try:
    import pynvml as nv
except ImportError:
    nv = None


def find_nvtop():
    if HAVE_PARTS:
        return os.path.join(PARTS, "nvtop", "usr", "bin", "nvtop")
    return os.environ.get("NVTOP") or shutil.which("nvtop")


SCENARIO = """
driver: "580.159.04"
cuda: 13000
gpus:
  - {{model: H200, counter_start_joules: 1000}}
  - model: A100-40GB
    mig: [{{gi: 1, profile: 3g.20gb}}, {{gi: 5, profile: 1g.5gb}}]
  - {{model: T4, accounting: true}}
processes:
  - {{pid: {own}, name: python3, gpus: 0, memory: 10GiB, load: gemm, real: true}}
  - {{pid: 990001, name: spinner, gpus: 0, memory: 2GiB, load: spin}}
  - {{pid: 990002, name: mig-train, gpus: 1, mig: {{gi: 1}}, memory: 4GiB, load: train}}
  - {{pid: 990003, name: video, gpus: 2, memory: {video}, kind: both, load: video}}
events:
  - {{at: 8, do: xid, gpu: 2, xid: 79}}
"""


class Scenario:
    """A scenario file and the environment that makes the driver use it."""

    def __init__(self, clock, video):
        self.folder = tempfile.mkdtemp(prefix="gpu-ledger-clients-")
        path = os.path.join(self.folder, "scenario.yaml")
        with open(path, "w") as file:
            file.write(SCENARIO.format(own=os.getpid(), video=video))
        self.environment = {"GPU_LEDGER_SIM_SCENARIO": path, "GPU_LEDGER_SIM_CLOCK": clock}

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class NvidiaMlPyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if nv is None:
            if HAVE_PARTS:
                raise AssertionError(f"no usable nvidia-ml-py in {PARTS}/pynvml")
            raise unittest.SkipTest("nvidia-ml-py is not there: set GPU_LEDGER_PARTS or PYNVML_DIR")
        cls.scenario = Scenario("virtual", video="not available")
        os.environ.update(cls.scenario.environment)
        cls.library = ctypes.CDLL("libnvidia-ml.so.1")
        cls.library.gpu_ledger_sim_set_time.argtypes = [ctypes.c_double]
        nv.nvmlInit()

    @classmethod
    def tearDownClass(cls):
        if nv is not None:
            nv.nvmlShutdown()
            cls.scenario.remove()

    def setUp(self):
        self.at(4)
        self.gpus = [nv.nvmlDeviceGetHandleByIndex(i) for i in range(nv.nvmlDeviceGetCount())]

    def at(self, seconds):
        self.library.gpu_ledger_sim_set_time(seconds)

    def test_system(self):
        self.assertEqual(nv.nvmlSystemGetDriverVersion(), "580.159.04")
        self.assertEqual(nv.nvmlSystemGetCudaDriverVersion_v2(), 13000)
        self.assertTrue(nv.nvmlSystemGetNVMLVersion().endswith("580.159.04"))

    def test_what_the_gpus_are(self):
        self.assertEqual([nv.nvmlDeviceGetName(g) for g in self.gpus],
                         ["NVIDIA H200", "NVIDIA A100-SXM4-40GB", "Tesla T4"])
        for index, gpu in enumerate(self.gpus):
            self.assertEqual(nv.nvmlDeviceGetIndex(gpu), index)
            uuid = nv.nvmlDeviceGetUUID(gpu)
            self.assertRegex(uuid, r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertEqual(nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID(uuid)), index)
            pci = nv.nvmlDeviceGetPciInfo(gpu)
            self.assertEqual(nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(pci.busId)), index)
            self.assertEqual(pci.pciDeviceId & 0xFFFF, 0x10DE)
        self.assertEqual(nv.nvmlDeviceGetArchitecture(self.gpus[0]), nv.NVML_DEVICE_ARCH_HOPPER)
        self.assertEqual(nv.nvmlDeviceGetCudaComputeCapability(self.gpus[1]), (8, 0))

    def test_memory(self):
        old = nv.nvmlDeviceGetMemoryInfo(self.gpus[0])
        new = nv.nvmlDeviceGetMemoryInfo(self.gpus[0], version=nv.nvmlMemory_v2)
        self.assertEqual(old.total, 150754820096)
        self.assertEqual(old.used, new.used + new.reserved)
        self.assertGreaterEqual(new.used, 12 << 30)

    def test_energy_and_power(self):
        gpu = self.gpus[0]
        before = nv.nvmlDeviceGetTotalEnergyConsumption(gpu)
        self.at(5)
        spent = nv.nvmlDeviceGetTotalEnergyConsumption(gpu) - before
        self.assertGreater(before, 1000_000)
        self.assertAlmostEqual(spent, nv.nvmlDeviceGetPowerUsage(gpu), delta=10)
        field = nv.nvmlDeviceGetFieldValues(gpu, [nv.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION])[0]
        self.assertEqual(field.nvmlReturn, 0)
        self.assertEqual(field.value.ullVal, before + spent)
        kind, samples = nv.nvmlDeviceGetSamples(gpu, nv.NVML_TOTAL_POWER_SAMPLES, 0)
        self.assertEqual((kind, len(samples)), (nv.NVML_VALUE_TYPE_UNSIGNED_INT, 119))
        self.assertEqual(samples[-1].timeStamp - samples[-2].timeStamp, 20000)
        self.assertEqual(nv.nvmlDeviceGetEnforcedPowerLimit(gpu), 700000)

    def test_processes(self):
        h200 = {p.pid: p for p in nv.nvmlDeviceGetComputeRunningProcesses(self.gpus[0])}
        self.assertEqual(set(h200), {os.getpid(), 990001})
        self.assertEqual(h200[990001].usedGpuMemory, 2 << 30)
        mig = nv.nvmlDeviceGetComputeRunningProcesses(self.gpus[1])
        self.assertEqual([(p.pid, p.gpuInstanceId, p.computeInstanceId) for p in mig], [(990002, 1, 0)])
        graphics = nv.nvmlDeviceGetGraphicsRunningProcesses(self.gpus[2])
        self.assertEqual([(p.pid, p.usedGpuMemory) for p in graphics], [(990003, None)])
        self.assertEqual(nv.nvmlDeviceGetMPSComputeRunningProcesses(self.gpus[0]), [])

    def test_utilization(self):
        self.assertEqual(nv.nvmlDeviceGetUtilizationRates(self.gpus[0]).gpu, 100)
        old = nv.nvmlDeviceGetProcessUtilization(self.gpus[0], 0)
        new = nv.nvmlDeviceGetProcessesUtilizationInfo(self.gpus[0], 0)
        self.assertEqual({u.pid for u in old}, {os.getpid(), 990001})
        self.assertEqual({u.pid for u in new}, {u.pid for u in old})
        self.assertAlmostEqual(sum(u.smUtil for u in new), 100, delta=2)
        self.assertEqual(nv.nvmlDeviceGetEncoderUtilization(self.gpus[2]), [60, 200000])
        with self.assertRaises(nv.NVMLError_NotSupported):
            nv.nvmlDeviceGetProcessUtilization(self.gpus[1], 0)
        newest = max(u.timeStamp for u in old)
        with self.assertRaises(nv.NVMLError_NotFound):
            nv.nvmlDeviceGetProcessUtilization(self.gpus[0], newest)

    def test_mig(self):
        self.assertEqual(nv.nvmlDeviceGetMigMode(self.gpus[1]), [1, 1])
        with self.assertRaises(nv.NVMLError_NotSupported):
            nv.nvmlDeviceGetMigMode(self.gpus[2])
        found = []
        for index in range(nv.nvmlDeviceGetMaxMigDeviceCount(self.gpus[1])):
            try:
                mig = nv.nvmlDeviceGetMigDeviceHandleByIndex(self.gpus[1], index)
            except nv.NVMLError_NotFound:
                continue
            self.assertTrue(nv.nvmlDeviceIsMigDeviceHandle(mig))
            self.assertTrue(nv.nvmlDeviceGetUUID(mig).startswith("MIG-"))
            parent = nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
            self.assertEqual(nv.nvmlDeviceGetIndex(parent), 1)
            attributes = nv.nvmlDeviceGetAttributes(mig)
            found.append((nv.nvmlDeviceGetGpuInstanceId(mig), attributes.gpuInstanceSliceCount,
                          len(nv.nvmlDeviceGetComputeRunningProcesses(mig))))
        self.assertEqual(found, [(1, 3, 1), (5, 1, 0)])

    def test_gpm(self):
        self.assertEqual(nv.nvmlGpmQueryDeviceSupport(self.gpus[0]).isSupportedDevice, 1)
        self.assertEqual(nv.nvmlGpmQueryDeviceSupport(self.gpus[2]).isSupportedDevice, 0)
        first, second = nv.nvmlGpmSampleAlloc(), nv.nvmlGpmSampleAlloc()

        def tensor():
            request = nv.c_nvmlGpmMetricsGet_t()
            request.version = nv.NVML_GPM_METRICS_GET_VERSION
            request.numMetrics = 1
            request.sample1, request.sample2 = first, second
            request.metrics[0].metricId = nv.NVML_GPM_METRIC_ANY_TENSOR_UTIL
            nv.nvmlGpmMetricsGet(request)
            self.assertEqual(request.metrics[0].nvmlReturn, 0)
            return request.metrics[0].value

        nv.nvmlGpmSampleGet(self.gpus[0], first)
        nv.nvmlGpmSampleGet(self.gpus[0], second)
        self.assertTrue(math.isnan(tensor()))
        self.at(6)
        nv.nvmlGpmSampleGet(self.gpus[0], second)
        self.assertAlmostEqual(tensor(), 44, delta=2)  # a GEMM half of the time
        nv.nvmlGpmSampleFree(first)
        nv.nvmlGpmSampleFree(second)

    def test_accounting(self):
        gpu = self.gpus[2]
        self.assertEqual(nv.nvmlDeviceGetAccountingMode(gpu), 1)
        self.assertEqual(nv.nvmlDeviceGetAccountingPids(gpu), [990003])
        stats = nv.nvmlDeviceGetAccountingStats(gpu, 990003)
        self.assertEqual((stats.isRunning, stats.gpuUtilization), (1, 25))
        if os.geteuid() == 0:
            nv.nvmlDeviceSetAccountingMode(self.gpus[0], 1)
            self.assertEqual(nv.nvmlDeviceGetAccountingMode(self.gpus[0]), 1)

    def test_events(self):
        events = nv.nvmlEventSetCreate()
        nv.nvmlDeviceRegisterEvents(self.gpus[2], nv.nvmlEventTypeXidCriticalError, events)
        with self.assertRaises(nv.NVMLError_Timeout):
            nv.nvmlEventSetWait_v2(events, 0)
        self.at(9)
        event = nv.nvmlEventSetWait_v2(events, 0)
        self.assertEqual((event.eventType, event.eventData), (nv.nvmlEventTypeXidCriticalError, 79))
        nv.nvmlEventSetFree(events)

    def test_the_rest_of_what_monitors_ask(self):
        gpu = self.gpus[0]
        self.assertIn(nv.nvmlDeviceGetTemperature(gpu, nv.NVML_TEMPERATURE_GPU), range(30, 90))
        self.assertEqual(nv.nvmlDeviceGetClockInfo(gpu, nv.NVML_CLOCK_SM), 1980)
        self.assertEqual(nv.nvmlDeviceGetPerformanceState(gpu), 0)
        self.assertEqual(nv.nvmlDeviceGetCurrentClocksEventReasons(gpu), 0)
        with self.assertRaises(nv.NVMLError_NotSupported):
            nv.nvmlDeviceGetFanSpeed(gpu)


def screen_of(command, environment, wanted):
    """What a program writes to a terminal of 160 columns until all that is wanted is there; then it is told q."""
    try:
        pid, terminal = pty.fork()
    except OSError as error:  # a root without /dev/pts
        raise unittest.SkipTest(f"no terminal to be had: {error}") from error
    if pid == 0:
        try:
            os.execve(command[0], command, environment)
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    output, deadline, asked = b"", time.monotonic() + NET, False
    status = None
    while status is None:
        readable, _, _ = select.select([terminal], [], [], 0.2)
        if readable:
            try:
                output += os.read(terminal, 65536)
            except OSError:  # the other end is closed
                pass
        screen = re.sub(rb"\x1b[\[(][0-9;?]*[A-Za-z]", b" ", output).decode("utf-8", "replace")
        if not asked and all(re.search(words, screen) for words in wanted):
            os.write(terminal, b"q")
            asked = True
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(code)
    os.close(terminal)
    return status, screen


class NvtopTest(unittest.TestCase):
    def setUp(self):
        self.nvtop = find_nvtop()
        if not HAVE_PARTS and not self.nvtop:
            self.skipTest("nvtop is not there: set GPU_LEDGER_PARTS or NVTOP")
        self.assertTrue(os.access(self.nvtop, os.X_OK), f"{self.nvtop} cannot be run")
        # nvtop 3.0 gives up on a process whose memory the driver cannot say.
        self.scenario = Scenario("real", video="1GiB")
        self.addCleanup(self.scenario.remove)
        libraries = [SIM]
        if HAVE_PARTS:
            for at in ("lib", "usr/lib"):
                libraries += glob.glob(os.path.join(PARTS, "nvtop", at, "*-linux-gnu"))
        self.environment = dict(os.environ, **self.scenario.environment, TERM="xterm", LINES="50", COLUMNS="160",
                                HOME=self.scenario.folder, XDG_CONFIG_HOME=self.scenario.folder,
                                LD_LIBRARY_PATH=":".join(libraries))

    def test_sees_gpus_and_processes(self):
        usage = subprocess.run([self.nvtop, "--help"], env=self.environment, capture_output=True, text=True, timeout=NET)
        if "--snapshot" in usage.stdout:
            self.check_snapshot()
        else:
            self.check_screen()

    def check_snapshot(self):
        shot = subprocess.run([self.nvtop, "-s"], env=self.environment, capture_output=True, text=True, timeout=NET)
        self.assertEqual(shot.returncode, 0, shot.stderr)
        names = [gpu["device_name"] for gpu in json.loads(shot.stdout)]
        self.assertEqual(names, ["NVIDIA H200", "NVIDIA A100-SXM4-40GB", "Tesla T4"])

    def check_screen(self):
        wanted = ("H200", "A100-SXM4-40GB", "T4", str(os.getpid()), r"700 ?W")
        status, screen = screen_of([self.nvtop, "-p", "-C", "-d", "5"], self.environment, wanted)
        for words in wanted:
            self.assertRegex(screen, words)
        self.assertEqual(status, 0, screen)


# What nvitop's screen is made of, as its own API says it: of GPUs and of the MIG devices in them.
NVITOP = """
import json
import nvitop
def number(value):
    return None if value is nvitop.NA else value
print(json.dumps([{
    "name": str(gpu.name()), "display": str(gpu.display_active()), "ecc": number(gpu.total_volatile_uncorrected_ecc_errors()),
    "limit": number(gpu.power_limit()), "utilization": number(gpu.gpu_utilization()), "pids": sorted(gpu.processes()),
    "pcie": number(gpu.pcie_throughput().rx), "links": number(gpu.nvlink_link_count()),
    "migs": [[str(mig.name()), number(mig.memory_total()), number(mig.bar1_memory_total()), sorted(mig.processes())]
             for mig in gpu.mig_devices()]} for gpu in nvitop.Device.all()]))
"""


class MonitorsTest(unittest.TestCase):
    def setUp(self):
        self.monitors = os.path.join(PARTS, "monitors")
        if not HAVE_PARTS or not os.path.isdir(self.monitors):
            self.skipTest("nvitop and gpustat are not there: set GPU_LEDGER_PARTS")
        self.scenario = Scenario("real", video="1GiB")
        self.addCleanup(self.scenario.remove)
        self.environment = dict(os.environ, **self.scenario.environment, LD_LIBRARY_PATH=SIM, PYTHONPATH=self.monitors,
                                TERM="xterm", LANG="C.UTF-8", COLUMNS="160")

    def run_python(self, *arguments):
        done = subprocess.run([sys.executable, "-B", *arguments], env=self.environment, capture_output=True, text=True,
                              timeout=NET)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_nvitop_reads_gpus_and_mig_devices(self):
        h200, a100, t4 = json.loads(self.run_python("-c", NVITOP))
        self.assertEqual([gpu["name"] for gpu in (h200, a100, t4)], ["NVIDIA H200", "NVIDIA A100-SXM4-40GB", "Tesla T4"])
        for gpu in (h200, a100, t4):
            self.assertEqual((gpu["display"], gpu["ecc"]), ("Disabled", 0))
        self.assertEqual((h200["limit"], h200["migs"], h200["pids"]), (700000, [], sorted([os.getpid(), 990001])))
        self.assertIsNone(a100["utilization"])
        self.assertEqual((h200["links"], a100["links"]), (0, 12))
        self.assertEqual(a100["migs"], [["NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20357 << 20, 32 << 30, [990002]],
                                        ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5089 << 20, 8 << 30, []]])

    def test_nvitop_shows_a_screen(self):
        screen = self.run_python("-m", "nvitop", "--once", "--ascii")
        for wanted in ("H200", "A100-SXM4-40GB", "3g.20gb @ GI/CI: 1/0", "1g.5gb @ GI/CI: 5/0", "990002"):
            self.assertIn(wanted, screen)
        self.assertNotIn("N/A / N/A", screen)

    def test_gpustat_reads_gpus(self):
        gpus = json.loads(self.run_python("-m", "gpustat", "--json"))["gpus"]
        self.assertEqual([gpu["name"] for gpu in gpus], ["NVIDIA H200", "NVIDIA A100-SXM4-40GB", "Tesla T4"])
        self.assertEqual([gpu["enforced.power.limit"] for gpu in gpus], [700, 400, 70])
        self.assertEqual([gpu["memory.total"] for gpu in gpus], [143771, 40960, 15360])
        self.assertEqual([process["pid"] for process in gpus[0]["processes"]], [os.getpid()])  # the one that /proc knows


if __name__ == "__main__":
    unittest.main(verbosity=2)
