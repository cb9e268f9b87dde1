// SPDX-License-Identifier: Apache-2.0
// One program that is a whole small Kubernetes for the tests: etcd, the control plane, the kubelet and a device
// plugin, each as a subcommand. One binary, because the parts share most of their code: it is compiled and linked once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Only the wanted command is made: each registers its feature gates and metrics globally when it is.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

var tools = map[string]func(ctx context.Context, arguments []string) error{
	"etcd":          runEtcd,
	"device-plugin": runDevicePlugin,
}

func main() {
	if len(os.Args) < 2 {
		fail(2, "name one of: %s", strings.Join(names(), ", "))
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	if component, ok := components[name]; ok {
		os.Exit(cli.Run(component()))
	}
	tool, ok := tools[name]
	if !ok {
		fail(2, "no part %q, name one of: %s", name, strings.Join(names(), ", "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := tool(ctx, os.Args[1:]); err != nil {
		fail(1, "%s: %v", name, err)
	}
}

func names() []string {
	var all []string
	for name := range components {
		all = append(all, name)
	}
	for name := range tools {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

func fail(code int, format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(code)
}
