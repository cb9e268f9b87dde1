// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"errors"
	"flag"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// One member without peers, on loopback. Nothing is synced to disk: the data lives as long as a test.
func runEtcd(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	folder := flags.String("data-dir", "", "where the data is kept")
	client := flags.String("listen", "http://127.0.0.1:2379", "for clients")
	peer := flags.String("peer", "http://127.0.0.1:2380", "for the peers it does not have")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	clientURL, err := url.Parse(*client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(*peer)
	if err != nil {
		return err
	}

	config := embed.NewConfig()
	config.Dir = *folder
	config.LogLevel = "warn"
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		return errors.New("not ready after 30 s")
	}
	select {
	case err = <-server.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}
