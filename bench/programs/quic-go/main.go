// Command quic-go sends data over QUIC as fast as quic-go's congestion control lets it, or receives it.
//
//	quic-go receive :PORT
//	quic-go send HOST:PORT SECONDS
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const protocol = "bulk"

// A receiver that never limits the sender: its congestion control is what is measured.
var config = &quic.Config{
	InitialStreamReceiveWindow:     64 << 20,
	MaxStreamReceiveWindow:         64 << 20,
	InitialConnectionReceiveWindow: 64 << 20,
	MaxConnectionReceiveWindow:     64 << 20,
}

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "receive":
		err = receive(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "send":
		err = send(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: quic-go receive :PORT | quic-go send HOST:PORT SECONDS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// send writes zeros for some seconds.
func send(address, seconds string) error {
	lasts, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return err
	}
	// The receiver's certificate is new each time, and nobody vouches for it.
	trust := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	connection, err := quic.DialAddr(context.Background(), address, trust, config)
	if err != nil {
		return err
	}
	stream, err := connection.OpenUniStreamSync(context.Background())
	if err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for ends := time.Now().Add(time.Duration(lasts * float64(time.Second))); time.Now().Before(ends); {
		if _, err := stream.Write(zeros); err != nil {
			return err
		}
	}
	return connection.CloseWithError(0, "")
}

// receive reads what one connection sends.
func receive(address string) error {
	certificate, err := certificate()
	if err != nil {
		return err
	}
	listener, err := quic.ListenAddr(address, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		NextProtos:   []string{protocol},
	}, config)
	if err != nil {
		return err
	}
	connection, err := listener.Accept(context.Background())
	if err != nil {
		return err
	}
	stream, err := connection.AcceptUniStream(context.Background())
	if err != nil {
		return err
	}
	// The sender closes the connection in the middle of its stream, which is no error here.
	bytes, _ := io.Copy(io.Discard, stream)
	fmt.Println(bytes, "bytes received")
	return nil
}

func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(nil, made, made, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}
