package processnode

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"karmada.io/karmada/internal/access/podenvironment"
)

// The Pods of the tests run the test binary as their program. The value of this variable selects
// what the program does.
const roleVariable = "KARMADA_TEST_ACT"

const rolePrefix = "act:"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	// The first argument of an exec command selects what the command does.
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], rolePrefix) {
		role, os.Args = os.Args[1][len(rolePrefix):], append(os.Args[:1], os.Args[2:]...)
	}
	if role == "" {
		os.Exit(m.Run())
	}
	code, err := runRole(role)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runRole runs the test binary as the program of a Pod.
func runRole(role string) (code int, err error) {
	fmt.Println("arguments:", os.Args[1:])
	switch role {
	case "node":
		return 0, runAsNode()
	case "exit":
		return strconv.Atoi(os.Args[1])
	case "copy":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return 0, err
	case "fail":
		fmt.Fprintln(os.Stderr, "wrong")
		return 7, nil
	case "reach":
		return 0, attemptAccess(os.Args[1:])
	case "serve":
		return 0, http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := os.Stat(os.Args[2]); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}))
	case "fetch":
		podenvironment.UsePodResolver()
		return 0, fetch(os.Args[1])
	case "name":
		fmt.Println("program", os.Args[0])
		return 0, nil
	case "print":
		data, err := os.ReadFile(os.Args[1])
		fmt.Printf("%s at %s\n", data, os.Getenv(podenvironment.PodAddressVariable))
		return 0, err
	case "wait":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("waiting")
		<-signals
		fmt.Println("ending")
		return 0, nil
	case "tick":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-signals:
				fmt.Println("the end")
				return 0, nil
			case <-ticker.C:
				fmt.Println("tick")
				fmt.Fprintln(os.Stderr, "tock")
			}
		}
	default:
		return 0, errors.New("unknown role: " + role)
	}
}

// fetch requests a URL until the response is a success.
func fetch(url string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(timeout)
	for {
		response, err := http.Get(url)
		if err == nil {
			fmt.Println(url, response.Status)
			if response.StatusCode == http.StatusOK {
				return response.Body.Close()
			}
			err = errors.Join(errors.New(response.Status), response.Body.Close())
		}
		select {
		case <-deadline:
			return err
		case <-ticker.C:
		}
	}
}

// connectToEtcd connects to a unix socket of etcd. certificate is the path of the client certificate
// and its key without the suffixes; without it, the client has no certificate. It returns nil if the
// server accepts the connection.
func connectToEtcd(socket, certificate string) error {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} // an attacker accepts any server
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate+".crt", certificate+".key")
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	conn, err := net.DialTimeout("unix", socket, timeout)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	secure := tls.Client(conn, config)
	// A server that accepts the client responds to the preface and to empty settings. A server that
	// rejects the client may close the connection before the write, but Read returns its alert.
	const emptySettings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	_, writeErr := secure.Write([]byte(http2.ClientPreface + emptySettings))
	if _, err := secure.Read(make([]byte, 1)); err != nil {
		return err
	}
	return writeErr
}

// attemptAccess tries forbidden accesses. The arguments are pairs of an action and a path. It
// returns an error that names the accesses that succeeded.
func attemptAccess(args []string) error {
	var succeeded []error
	for i := 0; i+1 < len(args); i += 2 {
		var err error
		action, certificate, _ := strings.Cut(args[i], " with ")
		switch path := args[i+1]; action {
		case "etcd":
			err = connectToEtcd(path, certificate)
		case "read":
			_, err = os.ReadFile(path)
		case "list":
			_, err = os.ReadDir(path)
		case "write":
			err = os.WriteFile(path, []byte("written"), 0o600)
		case "remove":
			err = os.Remove(path)
		case "run":
			err = exec.Command(path).Run()
		case "link":
			// Create a link in a writable directory. The link leads to a path that is not readable.
			if err = os.Symlink(path, "link"); err == nil {
				_, err = os.ReadFile("link")
			}
		}
		fmt.Println(args[i], args[i+1], err)
		if err == nil {
			succeeded = append(succeeded, fmt.Errorf("reached: %s %s", args[i], args[i+1]))
		}
	}
	return errors.Join(succeeded...)
}
