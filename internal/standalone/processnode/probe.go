package processnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// prober runs the probes of a container.
type prober struct {
	container *corev1.Container
	address   string
	// execWithOutput runs a command in the container.
	execWithOutput func(ctx context.Context, words []string, out io.Writer) error
}

const (
	maxProbeResponseBytes = 10 << 10
	defaultProbePeriod    = 10 * time.Second
	defaultProbeTimeout   = time.Second
	frequentProbePeriod   = 500 * time.Millisecond
)

func secondsOr(value int32, defaultDuration time.Duration) time.Duration {
	if value <= 0 {
		return defaultDuration
	}
	return time.Duration(value) * time.Second
}

var errNoProbeHandler = errors.New("the probe has no supported handler: use httpGet, tcpSocket or exec")

// probeOnce runs a probe once. It returns the reason of the failure as an error.
func (p *prober) probeOnce(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, secondsOr(probe.TimeoutSeconds, defaultProbeTimeout))
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return p.httpGet(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		target, err := p.targetAddress(probe.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		return conn.Close()
	case probe.Exec != nil && len(probe.Exec.Command) > 0:
		if err := p.execWithOutput(ctx, probe.Exec.Command, io.Discard); err != nil {
			return fmt.Errorf("running %s: %w", probe.Exec.Command[0], err)
		}
		return nil
	default:
		return errNoProbeHandler
	}
}

var errNoPort = errors.New("the container has no port of that name")

func (p *prober) resolvePort(portRef intstr.IntOrString) (string, error) {
	if portRef.Type == intstr.Int {
		return strconv.Itoa(portRef.IntValue()), nil
	}
	for _, port := range p.container.Ports {
		if port.Name == portRef.StrVal {
			return strconv.Itoa(int(port.ContainerPort)), nil
		}
	}
	if _, err := strconv.Atoi(portRef.StrVal); err == nil {
		return portRef.StrVal, nil
	}
	return "", fmt.Errorf("port %q: %w", portRef.StrVal, errNoPort)
}

// targetAddress returns the host and port of a probe. The probe must connect to a port that is open on the
// Pod's address, because any other connection would reach a program of the machine that listens on all
// addresses. A Pod whose probe names a host is not supported.
func (p *prober) targetAddress(portRef intstr.IntOrString) (string, error) {
	port, err := p.resolvePort(portRef)
	if err != nil {
		return "", err
	}
	target, err := netip.ParseAddrPort(net.JoinHostPort(p.address, port))
	if err != nil {
		return "", fmt.Errorf("port %q: %w", port, err)
	}
	if err := ensureListening(target); err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	return target.String(), nil
}

// httpGet succeeds with a status code from 200 to 399. As in any kubelet, the server's certificate is not
// verified, because certificates name services, not Pods.
func (p *prober) httpGet(ctx context.Context, action *corev1.HTTPGetAction) error {
	target, err := p.targetAddress(action.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if action.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	url := scheme + "://" + target + "/" + trimLeadingSlash(action.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("creating the request: %w", err)
	}
	for _, header := range action.HTTPHeaders {
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
			continue
		}
		request.Header.Add(header.Name, header.Value)
	}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, // see above
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("sending the request: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProbeResponseBytes))
	switch {
	case ctx.Err() != nil:
		// The program may have ended its response only because the connection was closed. Such a
		// response is not complete.
		return fmt.Errorf("requesting %s: %w", url, ctx.Err())
	case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s responded with %d: %s", url, response.StatusCode, text)
	case err != nil:
		return fmt.Errorf("reading the response of %s: %w", url, err)
	}
	return nil
}

func trimLeadingSlash(path string) string {
	if path != "" && path[0] == '/' {
		return path[1:]
	}
	return path
}

// run runs the probe periodically until ctx ends, and calls report after the required number of consecutive
// equal results. If frequent is set, it runs the probe more often until the first success, so that a
// starting program becomes ready sooner.
func (p *prober) run(ctx context.Context, probe *corev1.Probe, frequent bool, report func(err error)) {
	timer := time.NewTimer(secondsOr(probe.InitialDelaySeconds, 0))
	defer timer.Stop()
	period := secondsOr(probe.PeriodSeconds, defaultProbePeriod)
	var successes, failures int32
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := p.probeOnce(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		next := period
		if err == nil {
			successes, failures, frequent = successes+1, 0, false
		} else {
			successes, failures = 0, failures+1
		}
		if frequent {
			next = min(period, frequentProbePeriod)
		}
		if successes >= max(probe.SuccessThreshold, 1) || failures >= max(probe.FailureThreshold, 1) {
			report(err)
		}
		timer.Reset(next)
	}
}
