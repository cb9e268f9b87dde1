# SPDX-License-Identifier: Apache-2.0
"""What foreign engines ask an NVML driver when they start, asked of the simulated one without any of them.

DCGM's engine and Kepler walk MIG by profiles, GPU instances and compute instances; monitors ask for errors, links,
topology and the bus. Every call has to answer as the real driver of that GPU would, and answers have to agree.
"""
import ctypes
import os
import shutil
import tempfile
import unittest
from ctypes import POINTER, byref, c_char, c_int, c_uint, c_ulong, c_ulonglong, c_void_p

SIM = os.environ["GPU_LEDGER_SIM"]
OK, INVALID, NOT_SUPPORTED, INSUFFICIENT_SIZE, TIMEOUT, VERSION_MISMATCH = 0, 2, 3, 7, 10, 25
H200, A100, T4, RTX4090, H100, OTHER_H100 = range(6)

SCENARIO = """
gpus:
  - {model: H200}
  - model: A100-40GB
    mig: [{gi: 1, profile: 3g.20gb}, {gi: 5, ci: 0, profile: 2g.10gb}, {gi: 5, ci: 1, profile: 2g.10gb},
          {gi: 9, profile: 1g.5gb}]
  - {model: T4}
  - {model: RTX-4090}
  - {model: H100}
  - {model: H100}
processes:
  - {pid: 990001, name: copy, gpus: 0, memory: 2GiB, load: copy}
events:
  - {at: 2, do: field, gpu: 1, field: 4, value: 3}
  - {at: 2, do: field, gpu: 1, field: 143, value: 2}
  - {at: 2, do: field, gpu: 2, field: 30, value: 5}
  - {at: 2, do: mig_destroy, gpu: 1, gi: 9, ci: 0}
"""


class Field(ctypes.Structure):
    _fields_ = [("id", c_uint), ("scope", c_uint), ("at", c_ulonglong), ("latency", c_ulonglong), ("type", c_int),
                ("result", c_int), ("value", c_ulonglong)]


class Profile(ctypes.Structure):
    _fields_ = [(name, c_uint) for name in ("id", "p2p", "slices", "instances", "sms", "copy", "decoders", "encoders",
                                            "jpeg", "ofa")] + [("megabytes", c_ulonglong)]


class InstanceInfo(ctypes.Structure):
    _fields_ = [("device", c_void_p), ("id", c_uint), ("profile", c_uint), ("start", c_uint), ("size", c_uint)]


class ComputeProfile(ctypes.Structure):
    _fields_ = [(name, c_uint) for name in ("id", "slices", "instances", "sms", "copy", "decoders", "encoders", "jpeg",
                                            "ofa")]


class ComputeInfo(ctypes.Structure):
    _fields_ = [("device", c_void_p), ("instance", c_void_p), ("id", c_uint), ("profile", c_uint), ("start", c_uint),
                ("size", c_uint)]


class Attributes(ctypes.Structure):
    _fields_ = [(name, c_uint) for name in ("sms", "copy", "decoders", "encoders", "jpeg", "ofa", "slices",
                                            "compute_slices")] + [("megabytes", c_ulonglong)]


class Event(ctypes.Structure):
    _fields_ = [("device", c_void_p), ("type", c_ulonglong), ("data", c_ulonglong), ("gi", c_uint), ("ci", c_uint)]


class GpmMetric(ctypes.Structure):
    _fields_ = [("id", c_uint), ("result", c_int), ("value", ctypes.c_double), ("names", c_void_p * 3)]


class GpmRequest(ctypes.Structure):
    _fields_ = [("version", c_uint), ("count", c_uint), ("first", c_void_p), ("second", c_void_p),
                ("metrics", GpmMetric * 98)]


class NvmlCallsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gpu-ledger-calls-")
        path = os.path.join(cls.folder, "scenario.yaml")
        with open(path, "w") as file:
            file.write(SCENARIO)
        os.environ.update(GPU_LEDGER_SIM_SCENARIO=path, GPU_LEDGER_SIM_CLOCK="virtual")
        cls.nvml = ctypes.CDLL(os.path.join(SIM, "libnvidia-ml.so.1"))
        cls.nvml.gpu_ledger_sim_set_time.argtypes = [ctypes.c_double]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def setUp(self):
        self.at(1)
        self.assertEqual(self.nvml.nvmlInitWithFlags(0), OK)
        self.addCleanup(self.nvml.nvmlShutdown)
        self.gpus = [c_void_p() for _ in range(6)]
        for index, gpu in enumerate(self.gpus):
            self.assertEqual(self.nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(gpu)), OK)

    def at(self, seconds):
        self.nvml.gpu_ledger_sim_set_time(seconds)

    def ask(self, call, gpu, *arguments, out=1, kind=c_uint):
        """The return code and what was written to the last arguments."""
        outs = [kind() for _ in range(out)]
        device = self.gpus[gpu] if isinstance(gpu, int) else gpu
        code = getattr(self.nvml, call)(device, *arguments, *[byref(o) for o in outs])
        values = [getattr(o, "value", o) for o in outs]
        return code, values[0] if out == 1 else values

    def field(self, gpu, field, scope=0):
        value = Field(id=field, scope=scope)
        self.assertEqual(self.nvml.nvmlDeviceGetFieldValues(self.gpus[gpu], 1, byref(value)), OK)
        return value.result, value.value

    def profiles(self, gpu):
        """Every profile the driver knows: from 0 until it says that there is no such number."""
        found = {}
        for index in range(64):
            info = Profile()
            code = self.nvml.nvmlDeviceGetGpuInstanceProfileInfo(self.gpus[gpu], index, byref(info))
            if code == INVALID:
                return found
            self.assertIn(code, (OK, NOT_SUPPORTED))
            if code == OK:
                found[index] = info
        self.fail("the list of profiles never ends")

    @unittest.skipIf(os.geteuid(), "instances are shown to root")
    def test_engines_find_mig_by_profiles_and_instances(self):
        found = []
        for profile in self.profiles(A100).values():
            handles, count = (c_void_p * profile.instances)(), c_uint(99)
            self.assertEqual(self.nvml.nvmlDeviceGetGpuInstances(self.gpus[A100], profile.id, handles, byref(count)), OK)
            self.assertLessEqual(count.value, profile.instances)
            for handle in handles[:count.value]:
                info = InstanceInfo()
                self.assertEqual(self.nvml.nvmlGpuInstanceGetInfo(c_void_p(handle), byref(info)), OK)
                self.assertEqual(info.profile, profile.id)
                found.append((info.id, profile.slices, info.start, info.size, self.compute_instances(handle)))
        self.assertEqual(sorted(found), [(1, 3, 0, 4, [(0, 3)]), (5, 2, 4, 2, [(0, 1), (1, 1)]), (9, 1, 6, 1, [(0, 1)])])

    def compute_instances(self, handle):
        found = []
        for index in range(64):
            profile = ComputeProfile()
            code = self.nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(c_void_p(handle), index, 0, byref(profile))
            if code == INVALID:
                break
            self.assertIn(code, (OK, NOT_SUPPORTED))
            if code == NOT_SUPPORTED:
                continue
            handles, count = (c_void_p * profile.instances)(), c_uint(99)
            self.assertEqual(self.nvml.nvmlGpuInstanceGetComputeInstances(c_void_p(handle), profile.id, handles,
                                                                          byref(count)), OK)
            self.assertLessEqual(count.value, profile.instances)
            for compute in handles[:count.value]:
                info = ComputeInfo()
                self.assertEqual(self.nvml.nvmlComputeInstanceGetInfo_v2(c_void_p(compute), byref(info)), OK)
                self.assertEqual((info.instance, info.profile), (handle, profile.id))
                found.append((info.id, profile.slices))
        return found

    @unittest.skipIf(os.geteuid(), "instances are shown to root")
    def test_a_destroyed_instance_is_gone(self):
        smallest = self.profiles(A100)[0].id
        handle, count = c_void_p(), c_uint()
        self.assertEqual(self.nvml.nvmlDeviceGetGpuInstances(self.gpus[A100], smallest, byref(handle), byref(count)), OK)
        self.assertEqual(count.value, 1)
        self.at(3)
        buffer = (c_void_p * 7)()
        self.assertEqual(self.nvml.nvmlDeviceGetGpuInstances(self.gpus[A100], smallest, buffer, byref(count)), OK)
        self.assertEqual(count.value, 0)
        self.assertEqual(self.nvml.nvmlGpuInstanceGetInfo(handle, byref(InstanceInfo())), INVALID)

    def test_who_asks_hears_that_mig_changed(self):
        xid, mig_change = 0x8, 0x100
        self.assertEqual(self.ask("nvmlDeviceGetSupportedEventTypes", A100, kind=c_ulonglong), (OK, xid | mig_change))
        self.assertEqual(self.ask("nvmlDeviceGetSupportedEventTypes", T4, kind=c_ulonglong), (OK, xid))
        sets, event = [c_void_p(), c_void_p()], Event()
        for events, types in zip(sets, (xid, xid | mig_change)):
            self.assertEqual(self.nvml.nvmlEventSetCreate(byref(events)), OK)
            self.addCleanup(self.nvml.nvmlEventSetFree, events)
            self.assertEqual(self.nvml.nvmlDeviceRegisterEvents(self.gpus[A100], c_ulonglong(types), events), OK)
        self.assertEqual(self.nvml.nvmlDeviceRegisterEvents(self.gpus[T4], c_ulonglong(mig_change), sets[0]), NOT_SUPPORTED)
        self.at(3)
        self.assertEqual([self.nvml.nvmlEventSetWait_v2(events, byref(event), 0) for events in sets], [TIMEOUT, OK])
        self.assertEqual((event.device, event.type), (self.gpus[A100].value, mig_change))
        self.assertEqual(self.nvml.nvmlEventSetWait_v2(sets[1], byref(event), 0), TIMEOUT)

    def test_profiles_are_the_gpus_own(self):
        h200 = self.profiles(H200)  # with MIG off too; numbers as an H200 gave them
        self.assertEqual({i: (p.id, p.slices, p.instances, p.sms, p.copy, p.decoders) for i, p in h200.items()},
                         {0: (19, 1, 7, 16, 1, 1), 1: (14, 2, 3, 32, 2, 2), 2: (9, 3, 2, 60, 3, 3),
                          3: (5, 4, 1, 64, 4, 4), 4: (0, 7, 1, 132, 8, 7), 7: (20, 1, 1, 16, 1, 1),
                          9: (15, 1, 4, 26, 1, 1)})
        self.assertEqual(self.profiles(T4), {})
        self.assertEqual(self.nvml.nvmlDeviceGetGpuInstances(self.gpus[H200], 33, (c_void_p * 7)(), byref(c_uint())),
                         INVALID)
        name = (c_char * 152)()
        for version, at in ((2, 56), (3, 48)):
            ctypes.memset(name, 0, 152)
            c_uint.from_buffer(name).value = 152 | version << 24
            self.assertEqual(self.nvml.nvmlDeviceGetGpuInstanceProfileInfoV(self.gpus[A100], 2, name), OK)
            self.assertEqual(name[at:at + 12], b"MIG 3g.20gb\0")
        c_uint.from_buffer(name).value = 152 | 4 << 24
        self.assertEqual(self.nvml.nvmlDeviceGetGpuInstanceProfileInfoV(self.gpus[A100], 2, name), INVALID)

    def test_mig_device_agrees_with_its_profile(self):
        code, mig = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", A100, 0, kind=c_void_p)
        self.assertEqual(code, OK)
        attributes = Attributes()
        self.assertEqual(self.nvml.nvmlDeviceGetAttributes_v2(c_void_p(mig), byref(attributes)), OK)
        profile = self.profiles(A100)[2]
        self.assertEqual((attributes.sms, attributes.slices, attributes.megabytes, attributes.decoders),
                         (profile.sms, profile.slices, profile.megabytes, profile.decoders))
        whole, part = (c_ulonglong * 3)(), (c_ulonglong * 3)()
        self.assertEqual(self.nvml.nvmlDeviceGetBAR1MemoryInfo(self.gpus[A100], whole), OK)
        self.assertEqual(self.nvml.nvmlDeviceGetBAR1MemoryInfo(c_void_p(mig), part), OK)
        self.assertEqual((whole[0] >> 30, part[0] >> 30), (64, 32))
        self.assertEqual(part[0], part[1] + part[2])

    def test_errors_of_the_memory_agree(self):
        self.at(3)
        errors = "nvmlDeviceGetTotalEccErrors"
        self.assertEqual(self.ask(errors, A100, 1, 0, kind=c_ulonglong), (OK, 3))
        self.assertEqual(self.ask(errors, A100, 1, 0, kind=c_ulonglong), self.field(A100, 4))
        self.assertEqual(self.ask(errors, A100, 0, 0, kind=c_ulonglong), (OK, 0))
        self.assertEqual(self.ask(errors, A100, 2, 0, kind=c_ulonglong)[0], INVALID)
        self.assertEqual(self.ask(errors, RTX4090, 0, 0, kind=c_ulonglong)[0], NOT_SUPPORTED)
        at = [self.ask("nvmlDeviceGetMemoryErrorCounter", A100, 1, 0, place, kind=c_ulonglong) for place in range(9)]
        self.assertEqual([code for code, _ in at], [3, 3, 0, 3, 3, 3, 3, 0, 2])
        self.assertEqual((at[2][1], at[7][1]), (3, 0))
        self.assertEqual(self.ask("nvmlDeviceGetRemappedRows", A100, out=4), (OK, [0, 2, 0, 0]))
        self.assertEqual(self.ask("nvmlDeviceGetRemappedRows", T4, out=4)[0], NOT_SUPPORTED)
        pages = c_uint(0)
        ask = self.nvml.nvmlDeviceGetRetiredPages
        self.assertEqual((ask(self.gpus[T4], 1, byref(pages), None), pages.value), (INSUFFICIENT_SIZE, 5))
        self.assertEqual((ask(self.gpus[T4], 1, byref(pages), (c_ulonglong * 5)()), pages.value), (OK, 5))
        self.assertEqual(ask(self.gpus[A100], 1, byref(pages), None), NOT_SUPPORTED)
        self.assertEqual(self.ask("nvmlDeviceGetEccMode", H200, out=2), (OK, [1, 1]))
        self.assertEqual(self.ask("nvmlDeviceGetEccMode", RTX4090, out=2)[0], NOT_SUPPORTED)

    def test_links_and_fabric_agree(self):
        state = "nvmlDeviceGetNvLinkState"
        # Two H100 share a fabric, the one A100 has links that lead nowhere, the H200 has none.
        self.assertEqual(self.ask(state, H100, 17), (OK, 1))
        self.assertEqual(self.ask(state, H100, 18)[0], INVALID)
        self.assertEqual(self.ask(state, A100, 0), (OK, 0))
        self.assertEqual(self.ask(state, H200, 0)[0], NOT_SUPPORTED)
        for field in (138, 139):
            self.assertEqual([self.field(H100, field, scope)[0] for scope in (0, 17, 18, 0xFFFFFFFF)], [OK, OK, INVALID, OK])
            self.assertEqual(self.field(H200, field, 0)[0], NOT_SUPPORTED)
        self.assertEqual([self.field(gpu, 147)[1] for gpu in (H100, A100, H200)], [18, 0, 0])
        info = (c_char * 40)()
        for size, version in ((36, 2), (40, 3)):
            ctypes.memset(info, 0xEE, 40)
            c_uint.from_buffer(info).value = size | version << 24
            self.assertEqual(self.nvml.nvmlDeviceGetGpuFabricInfoV(self.gpus[H100], info), OK)
            self.assertEqual((info[20:24], info[28]), (b"\0\0\0\0", b"\3"))
            self.assertEqual(info[36], b"\1" if version == 3 else b"\xee")  # nothing behind the older, shorter form
        c_uint.from_buffer(info).value = 40 | 4 << 24
        self.assertEqual(self.nvml.nvmlDeviceGetGpuFabricInfoV(self.gpus[H100], info), VERSION_MISMATCH)
        ctypes.memset(info, 0xEE, 40)
        self.assertEqual(self.nvml.nvmlDeviceGetGpuFabricInfo(self.gpus[H200], info), OK)
        self.assertEqual((info[24], info[28]), (b"\0", b"\xee"))  # no fabric; and no byte too many
        self.assertEqual(self.nvml.nvmlDeviceGetGpuFabricInfo(self.gpus[A100], info), NOT_SUPPORTED)

    def test_topology_is_the_same_from_every_side(self):
        ancestor = "nvmlDeviceGetTopologyCommonAncestor"
        for one in range(6):
            mask = (c_ulong * 2)()
            self.assertEqual(self.nvml.nvmlDeviceGetCpuAffinity(self.gpus[one], 2, mask), OK)
            self.assertEqual(list(mask), [2**64 - 1, 0] if one < 3 else [0, 2**64 - 1])
            near = {}
            for level in (40, 50):
                count, handles = c_uint(0), (c_void_p * 6)()
                self.assertEqual(self.nvml.nvmlDeviceGetTopologyNearestGpus(self.gpus[one], level, byref(count), None), OK)
                self.assertEqual(self.nvml.nvmlDeviceGetTopologyNearestGpus(self.gpus[one], level, byref(count), handles), OK)
                near[level] = handles[:count.value]
            for other in range(6):
                code, level = self.ask(ancestor, one, self.gpus[other])
                if one == other:
                    self.assertEqual(code, NOT_SUPPORTED)
                    continue
                self.assertEqual((code, level), self.ask(ancestor, other, self.gpus[one]))
                self.assertIn(self.gpus[other].value, near[level])
        self.assertEqual(self.nvml.nvmlDeviceGetCpuAffinity(self.gpus[0], 0, (c_ulong * 1)()), INVALID)

    def test_the_bus_carries_what_gpm_says(self):
        samples = [c_void_p(), c_void_p()]
        for sample, seconds in zip(samples, (4, 5)):
            self.at(seconds)
            self.assertEqual(self.nvml.nvmlGpmSampleAlloc(byref(sample)), OK)
            self.addCleanup(self.nvml.nvmlGpmSampleFree, sample)
            self.assertEqual(self.nvml.nvmlGpmSampleGet(self.gpus[H200], sample), OK)
        request = GpmRequest(version=1, count=2, first=samples[0], second=samples[1])
        request.metrics[0].id, request.metrics[1].id = 20, 21
        self.assertEqual(self.nvml.nvmlGpmMetricsGet(byref(request)), OK)
        for counter in (0, 1):
            code, kilobytes = self.ask("nvmlDeviceGetPcieThroughput", H200, counter)
            self.assertEqual(code, OK)
            self.assertGreater(kilobytes, 1000)
            self.assertAlmostEqual(kilobytes * 1000, request.metrics[counter].value * 2**20, delta=2000)
        self.assertEqual(self.ask("nvmlDeviceGetPcieThroughput", H200, 2)[0], INVALID)

    def test_the_board(self):
        self.assertEqual([self.ask("nvmlDeviceGetNumFans", gpu) for gpu in (H200, RTX4090)], [(OK, 0), (OK, 1)])
        self.assertEqual(self.ask("nvmlDeviceGetFanSpeed_v2", H200, 0)[0], INVALID)
        self.assertEqual(self.ask("nvmlDeviceGetFanSpeed_v2", RTX4090, 0), self.ask("nvmlDeviceGetFanSpeed", RTX4090))
        self.assertEqual(self.ask("nvmlDeviceGetDisplayActive", H200), (OK, 0))
        self.assertEqual(self.ask("nvmlDeviceGetDriverModel", H200, out=2)[0], NOT_SUPPORTED)
        text = ctypes.create_string_buffer(32)
        for gpu, start in ((H200, b"96.00."), (A100, b"92.00."), (T4, b"90.04.")):
            self.assertEqual(self.nvml.nvmlDeviceGetVbiosVersion(self.gpus[gpu], text, 32), OK)
            self.assertTrue(text.value.startswith(start), text.value)
        self.assertEqual(self.nvml.nvmlDeviceGetVbiosVersion(self.gpus[H200], text, 2), INSUFFICIENT_SIZE)
        code, mhz = self.ask("nvmlDeviceGetApplicationsClock", H200, 2)
        self.assertEqual((code, mhz), (OK, 3201))
        count, clocks = c_uint(0), (c_uint * 200)()
        self.assertEqual(self.nvml.nvmlDeviceGetSupportedGraphicsClocks(self.gpus[H200], mhz, byref(count), None),
                         INSUFFICIENT_SIZE)
        self.assertEqual(self.nvml.nvmlDeviceGetSupportedGraphicsClocks(self.gpus[H200], mhz, byref(count), clocks), OK)
        self.assertEqual((count.value, clocks[0], clocks[109]), (110, 1980, 345))

    def test_the_system(self):
        count = c_uint(9)
        self.assertEqual((self.nvml.nvmlGetExcludedDeviceCount(byref(count)), count.value), (OK, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
