// SPDX-License-Identifier: Apache-2.0
#include "app/commands/commands.h"

namespace gpuledger::app {

// Each has its own file.
Status serve_command(const Config& config, const ConfigSources& sources);
Status once_command(const Config& config, const ConfigSources& sources);
Status top_command(const Config& config, const ConfigSources& sources);
Status job_command(const Config& config, const ConfigSources& sources);
Status check_job(const Config& config);
Status doctor_command(const Config& config, const ConfigSources& sources);
Status record_command(const Config& config, const ConfigSources& sources);
Status replay_command(const Config& config, const ConfigSources& sources);
Status bill_command(const Config& config, const ConfigSources& sources);
Status check_bill(const Config& config);
Status accounting_command(const Config& config, const ConfigSources& sources);
std::string completion_command(const ConfigSources& sources, const std::string& shell);
std::string help_command(const ConfigSources& sources, const std::string& about);
std::string version_command(const ConfigSources& sources, const std::string& argument);

namespace {

constexpr Command kCommands[] = {
    {"serve", "", "samples, keeps the ledger and serves HTTP (the default)",
     "Runs until SIGTERM. SIGHUP reads the config file and the web config file again; SIGUSR1 releases the GPUs, "
     "SIGUSR2 opens them again.",
     "gpu-ledger serve --listen-address=:9400 --state-file=/var/lib/gpu-ledger/state",
     "no GPU found, or an address or a file in the settings cannot be used", serve_command},
    {"once", "", "takes one measurement, prints the metrics or writes --textfile, and exits; for CronJobs",
     "Samples twice, one --sample-interval apart, for the rates. With --state-file the counters continue from the last "
     "run.",
     "gpu-ledger once --textfile=/var/lib/node_exporter/gpu.prom",
     "no GPU found, its driver does not answer, or a file cannot be written", once_command,
     "sampling ledger source kubernetes containers collectors program metric-prefix max-series textfile textfile-mode "
     "textfile-dcgm node-name pod-name pod-namespace !idle-interval !dcgm-exporter-url !dcgm-exporter-file"},
    {"top", "", "shows a live table: GPUs, then processes by watts; q quits, h lists the keys",
     "Shows the books of the exporter at --url, else of the one on this machine, else its own, which begin when it "
     "starts. It writes no file. Without colours if the variable NO_COLOR is set.",
     "gpu-ledger top --url=http://node7:9400", "no GPU found, or no exporter answers at --url", top_command,
     "sampling ledger source kubernetes containers program node-name listen-address !state-file !state-file-mode "
     "!dcgm-exporter-url !dcgm-exporter-file !dcgm-pcie-throughput"},
    {"job", "ID", "reports the GPU energy, time and memory of a Slurm job on one node, running or ended",
     "Asks the exporter at --url, else the one on this machine. ID is the job's number (squeue -o %A). With "
     "--format=json or line, unknown values are left out.",
     "gpu-ledger job 70411 --url=http://node7:9400 --price-per-kwh=0.25",
     "no exporter answers, or it does not know the job", job_command, "program listen-address", nullptr, check_job},
    {"doctor", "",
     "checks the driver, /proc, all sockets and the API server; prints ok or the problem and its remedy for each",
     "Run it as the user and with the settings of the program that serves. It changes nothing, except that it writes "
     "and removes a test file beside each output file.",
     "gpu-ledger doctor --state-file=/var/lib/gpu-ledger/state", "something that the settings require is missing",
     doctor_command},
    {"record", "FILE", "records one GPU's driver data to FILE, gzipped if FILE ends in .gz",
     "Records the first GPU, or the one in --gpu-devices. With exact time the recording also has the context-switch "
     "trace. Names of processes and owners are hashed unless you set --record-names.",
     "gpu-ledger record gpu3.jsonl.gz --gpu-devices=3 --for=1m", "no GPU found, it was lost, or FILE cannot be written",
     record_command,
     "backend nvml-library sim-scenario gpu-devices exact-time exact-time-budget program proc-root kubernetes "
     "containers node-name !pod-labels"},
    {"replay", "FILE", "computes the ledger of a recording and prints the books as JSON",
     "Needs no GPU. The attribution settings apply as they do live.",
     "gpu-ledger replay gpu3.jsonl.gz --attribution=utilization", "FILE cannot be read or is no recording",
     replay_command,
     "ledger program sample-interval idle-interval metric-retention owner-retention max-exited-processes "
     "max-ended-owners !exact-time-budget !state-file !state-file-mode"},
    {"bill", "",
     "makes the bill of a month or any span from a Prometheus server: energy, GPU hours, cost and CO2e by team",
     "Compares counters, so that the lines add up to the meters of all GPUs. If the server lacks hours of a node, the "
     "bill names them and the exit code is 1. Needs no GPU. docs/bill.md explains it.",
     "gpu-ledger bill --prometheus-url=http://prometheus:9090 --month=2026-10 --price-per-kwh=0.25",
     "the server does not answer or lacks hours of a node, or no series has what --by names", bill_command,
     "bill program web-config-file allowed-hosts", nullptr, check_bill},
    {"accounting", "status|on|off",
     "shows or sets the accounting mode of every GPU, in which the driver keeps statistics of exited processes; on and "
     "off need root",
     "Prints a line per GPU: index, UUID, model and mode, separated by tabs. A GPU without accounting is no failure.",
     "gpu-ledger accounting on --gpu-devices=0", "no GPU found, or one refused", accounting_command,
     "backend nvml-library sim-scenario gpu-devices program"},
    {"completion", "bash|zsh|fish", "prints the completion of commands and flags for a shell",
     "The packages install all three. For one shell alone: source <(gpu-ledger completion bash).",
     "gpu-ledger completion bash", "", nullptr, "", completion_command},
    {"help", "[COMMAND]", "prints what all commands or one of them can do", "The same as --help.",
     "gpu-ledger help top", "", nullptr, "", help_command},
    {"version", "", "prints the version and the commit it was built from", "The same as --version.",
     "gpu-ledger version", "", nullptr, "", version_command},
};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace gpuledger::app
