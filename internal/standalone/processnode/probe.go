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

	"karmada.io/karmada/internal/standalone/processnode/kubelet"
)

// prober asks a container how it is.
type prober struct {
	container *corev1.Container
	address   string
	// exec runs a command in the container.
	exec func(ctx context.Context, words []string, out io.Writer) error
}

const (
	maxProbeAnswer = 10 << 10
	defaultPeriod  = 10 * time.Second
	defaultTimeout = time.Second
	eagerPeriod    = 500 * time.Millisecond
)

func seconds(value int32, otherwise time.Duration) time.Duration {
	if value <= 0 {
		return otherwise
	}
	return time.Duration(value) * time.Second
}

var errProbe = errors.New("no handler that this node supports: use httpGet, tcpSocket or exec")

// ask asks once; an error tells what is wrong.
func (p *prober) ask(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(probe.TimeoutSeconds, defaultTimeout))
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return p.get(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		target, err := p.target(probe.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		return conn.Close()
	case probe.Exec != nil && len(probe.Exec.Command) > 0:
		if err := p.exec(ctx, probe.Exec.Command, io.Discard); err != nil {
			return fmt.Errorf("running %s: %w", probe.Exec.Command[0], err)
		}
		return nil
	default:
		return errProbe
	}
}

var errNoPort = errors.New("the container has no port of that name")

func (p *prober) port(of intstr.IntOrString) (string, error) {
	if of.Type == intstr.Int {
		return strconv.Itoa(of.IntValue()), nil
	}
	for _, port := range p.container.Ports {
		if port.Name == of.StrVal {
			return strconv.Itoa(int(port.ContainerPort)), nil
		}
	}
	if _, err := strconv.Atoi(of.StrVal); err == nil {
		return of.StrVal, nil
	}
	return "", fmt.Errorf("port %q: %w", of.StrVal, errNoPort)
}

// target is the host and port of a probe. Only a port at which the Pod's own address
// listens is one: any other connection ends at a program of the machine that listens on
// all addresses. A Pod whose probe names a host does not run.
func (p *prober) target(of intstr.IntOrString) (string, error) {
	port, err := p.port(of)
	if err != nil {
		return "", err
	}
	target, err := netip.ParseAddrPort(net.JoinHostPort(p.address, port))
	if err != nil {
		return "", fmt.Errorf("port %q: %w", port, err)
	}
	if err := kubelet.CheckListening(target); err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	return target.String(), nil
}

// get succeeds with any answer from 200 to 399. Who answers is not checked, as
// nowhere: certificates name services, not Pods.
func (p *prober) get(ctx context.Context, get *corev1.HTTPGetAction) error {
	target, err := p.target(get.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	url := scheme + "://" + target + "/" + trimSlash(get.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	for _, header := range get.HTTPHeaders {
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
			continue
		}
		request.Header.Add(header.Name, header.Value)
	}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, //nolint:gosec // see above
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProbeAnswer))
	switch {
	case ctx.Err() != nil:
		// The end of the connection can make a program end its answer, as if it were one.
		return fmt.Errorf("asking %s: %w", url, ctx.Err())
	case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s answered %d: %s", url, response.StatusCode, text)
	case err != nil:
		return fmt.Errorf("reading what %s answers: %w", url, err)
	}
	return nil
}

func trimSlash(path string) string {
	if path != "" && path[0] == '/' {
		return path[1:]
	}
	return path
}

// watch asks again and again until ctx ends, and calls verdict when enough answers
// in a row agree. A program that is just starting is what somebody waits for: an
// eager watch asks it more often until its first good answer.
func (p *prober) watch(ctx context.Context, probe *corev1.Probe, eager bool, verdict func(err error)) {
	delay := time.NewTimer(seconds(probe.InitialDelaySeconds, 0))
	defer delay.Stop()
	period := seconds(probe.PeriodSeconds, defaultPeriod)
	var good, bad int32
	for {
		select {
		case <-ctx.Done():
			return
		case <-delay.C:
		}
		err := p.ask(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		next := period
		if err == nil {
			good, bad, eager = good+1, 0, false
		} else {
			good, bad = 0, bad+1
		}
		if eager {
			next = min(period, eagerPeriod)
		}
		if good >= max(probe.SuccessThreshold, 1) || bad >= max(probe.FailureThreshold, 1) {
			verdict(err)
		}
		delay.Reset(next)
	}
}
