// kubevirt-proxy runs KubeVirt's own migration proxy between a unix socket and TCP, as the peer that
// Ferry's relay is measured against:
//
//	kubevirt-proxy source UNIX HOST:PORT CA CERT KEY
//	kubevirt-proxy target HOST PORT UNIX CA CERT KEY
//
// Certificates are verified by chain; names are not looked at (KubeVirt checks common names of its own).
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	diskutils "kubevirt.io/kubevirt/pkg/ephemeral-disk-utils"
	"kubevirt.io/kubevirt/pkg/safepath"
	proxy "kubevirt.io/kubevirt/pkg/virt-handler/migration-proxy"
)

// sameOwner leaves sockets as they are: there is no user "qemu" to give them to here.
type sameOwner struct{}

func (sameOwner) UnsafeSetFileOwnership(string) error   { return nil }
func (sameOwner) SetFileOwnership(*safepath.Path) error { return nil }

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubevirt-proxy:", err)
	os.Exit(1)
}

func tlsConfig(ca, cert, key string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		fail(err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		fail(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		fail(errors.New(ca + ": no certificate"))
	}
	verify := func(raw [][]byte, _ [][]*x509.Certificate) error {
		leaf, err := x509.ParseCertificate(raw[0])
		if err != nil {
			return err
		}
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	return &tls.Config{
		Certificates:          []tls.Certificate{pair},
		ClientAuth:            tls.RequireAnyClientCert,
		InsecureSkipVerify:    true, // replaced by verify, as KubeVirt does
		VerifyPeerCertificate: verify,
		MinVersion:            tls.VersionTLS13,
	}
}

func main() {
	var start func() error

	diskutils.DefaultOwnershipManager = sameOwner{}
	switch {
	case len(os.Args) == 7 && os.Args[1] == "source":
		c := tlsConfig(os.Args[4], os.Args[5], os.Args[6])
		start = proxy.NewSourceProxy(os.Args[2], os.Args[3], c, c, "bench").Start
	case len(os.Args) == 8 && os.Args[1] == "target":
		port, err := strconv.Atoi(os.Args[3])
		if err != nil {
			fail(err)
		}
		c := tlsConfig(os.Args[5], os.Args[6], os.Args[7])
		start = proxy.NewTargetProxy(os.Args[2], port, c, c, os.Args[4], "bench").Start
	default:
		fail(errors.New("usage: source UNIX HOST:PORT CA CERT KEY | target HOST PORT UNIX CA CERT KEY"))
	}
	if err := start(); err != nil {
		fail(err)
	}
	fmt.Println("listening")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}
