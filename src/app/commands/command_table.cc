// SPDX-License-Identifier: Apache-2.0
#include "app/commands/commands.h"

namespace gpuledger::app {

// Each has its own file.
Status serve_command(const Config& config, const ConfigSources& sources);
Status once_command(const Config& config, const ConfigSources& sources);
Status top_command(const Config& config, const ConfigSources& sources);
Status doctor_command(const Config& config, const ConfigSources& sources);
Status record_command(const Config& config, const ConfigSources& sources);
Status replay_command(const Config& config, const ConfigSources& sources);
Status accounting_command(const Config& config, const ConfigSources& sources);

namespace {

constexpr std::string_view kNoDriver = "there is no GPU, or its driver cannot be used";

constexpr Command kCommands[] = {
    {"serve", "", "samples, keeps the ledger and serves HTTP (the default)",
     "Runs until SIGTERM. SIGHUP reads the config file and the web config file again; SIGUSR1 lets the GPUs go, "
     "SIGUSR2 "
     "takes them back.",
     "gpu-ledger serve --listen-address=:9400 --state-file=/var/lib/gpu-ledger/state",
     "there is no GPU, or an address or a file that the settings name cannot be used", serve_command},
    {"once", "", "takes one look, prints the metrics or writes --textfile, and exits; for CronJobs",
     "Looks twice, one --sample-interval apart, so that there are rates. With --state-file the books go on where the "
     "last program ended.",
     "gpu-ledger once --textfile=/var/lib/node_exporter/gpu.prom",
     "there is no GPU, its driver does not answer, or a file cannot be written", once_command},
    {"top", "", "a live table in the terminal: GPUs, then processes by watts; q quits",
     "The keys w, m, e and i sort by watts, memory, energy and idleness. Its books begin when it starts; it writes no "
     "file.",
     "gpu-ledger top --batch", kNoDriver, top_command},
    {"doctor", "",
     "checks the driver, /proc, every socket and the API server; a line each: ok, or what is wrong and what to do",
     "Run it as the user and with the settings of the program that serves. It changes nothing, "
     "but for a file that it makes and removes again where one will be written.",
     "gpu-ledger doctor --state-file=/var/lib/gpu-ledger/state", "something that the settings ask for cannot be had",
     doctor_command},
    {"record", "FILE", "writes what the driver says of one GPU to a trace, gzipped if FILE ends in .gz",
     "Of several GPUs it is the first, or the one that --gpu-devices names. With --exact-time the trace also has who "
     "was on the "
     "GPU when.",
     "gpu-ledger record gpu3.jsonl.gz --gpu-devices=3 --for=1m",
     "there is no GPU, it went away, or FILE cannot be written", record_command},
    {"replay", "FILE", "keeps the ledger over a trace, as fast as it can, and prints the books as JSON",
     "Needs no GPU. The settings that say who pays count as they do live.",
     "gpu-ledger replay gpu3.jsonl.gz --attribution=utilization", "FILE cannot be read, or is no trace",
     replay_command},
    {"accounting", "status|on|off",
     "tells or sets the accounting mode of every GPU, in which the driver keeps statistics of processes that are gone; "
     "on and off need root",
     "Prints a line for each GPU: index, UUID, model and mode, with tabs between. A GPU that cannot keep accounts is "
     "no "
     "failure.",
     "gpu-ledger accounting on --gpu-devices=0", "there is no GPU, or one refused", accounting_command},
};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace gpuledger::app
