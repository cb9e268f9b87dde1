// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin offers a fixed list of device ids under one resource name, as NVIDIA's device plugin does. Nothing is
// mounted into a container that gets one: the GPUs are simulated.
type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	ids      []string
	socket   string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var devices []*api.Device
	for _, id := range p.ids {
		devices = append(devices, &api.Device{ID: id, Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	reply := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		environment := map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}
		reply.ContainerResponses = append(reply.ContainerResponses, &api.ContainerAllocateResponse{Envs: environment})
	}
	return reply, nil
}

// serve registers with the kubelet and returns when the kubelet was restarted: it then empties the folder.
func (p *plugin) serve(ctx context.Context) error {
	os.Remove(p.socket)
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()
	if err := p.register(ctx); err != nil {
		return err
	}
	fmt.Println("registered", p.resource)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
		if _, err := os.Stat(p.socket); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
}

func (p *plugin) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(p.socket), ResourceName: p.resource})
	return err
}

// Arguments: one RESOURCE=ID,ID,... for each resource.
func runDevicePlugin(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("device-plugin", flag.ExitOnError)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var everyone sync.WaitGroup
	for index, argument := range flags.Args() {
		resource, ids, found := strings.Cut(argument, "=")
		if !found {
			return fmt.Errorf("%q is not RESOURCE=ID,ID,...", argument)
		}
		socket := fmt.Sprintf("%s/gpu-ledger-%d.sock", api.DevicePluginPath, index)
		one := &plugin{resource: resource, ids: strings.Split(ids, ","), socket: filepath.Clean(socket)}
		everyone.Add(1)
		go func() {
			defer everyone.Done()
			for ctx.Err() == nil {
				if err := one.serve(ctx); err != nil {
					fmt.Fprintln(os.Stderr, one.resource, err)
					time.Sleep(500 * time.Millisecond) // the kubelet is not there yet
				}
			}
		}()
	}
	everyone.Wait()
	return nil
}
