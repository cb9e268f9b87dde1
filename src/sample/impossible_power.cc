// SPDX-License-Identifier: Apache-2.0
#include "sample/impossible_power.h"

#include "model/most_power.h"

namespace gpuledger {

void leave_out_impossible_power(SampleBatch& batch) {
  for (DeviceSample& device : batch.devices) {
    const Power most = most_power(device.description->power_limit);
    const auto impossible = [&](Power power) { return power < Power() || power > most; };
    if (device.power && impossible(*device.power)) {
      device.power.reset();
      ++device.refused_readings;
    }
    device.refused_readings +=
        std::erase_if(device.power_readings, [&](const PowerReading& reading) { return impossible(reading.power); });
  }
}

}  // namespace gpuledger
