package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// maxAge is the time for which the address of a Service is used without reading the Service.
	maxAge = 10 * time.Second
	// defaultPort is the port of a Service in a webhook configuration that names none.
	defaultPort = 443
	// maxAddressBytes limits the length of an address within an error.
	maxAddressBytes = 300
)

// target is an address to which requests are sent.
type target struct {
	url *url.URL
	// serverName is the name that the certificate must have. Empty means the host of the URL.
	serverName string
}

// location finds the address of a webhook.
type location struct {
	config   admissionregistrationv1.WebhookClientConfig
	services func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	now      func() time.Time

	mu sync.Mutex
	// found is the address of the Service, or nil. It is used until the time expires.
	found   *target
	expires time.Time
}

// String returns the configured address for errors.
func (l *location) String() string {
	switch service := l.config.Service; {
	case service != nil:
		return describeService(service)
	case l.config.URL != nil:
		if parsed, err := url.Parse(*l.config.URL); err == nil {
			return describeURL(parsed)
		}
		return conditions.Truncate(strconv.Quote(*l.config.URL), maxAddressBytes)
	default:
		return "clientConfig"
	}
}

func describeService(service *admissionregistrationv1.ServiceReference) string {
	return conditions.Truncate(fmt.Sprintf("Service %s/%s", service.Namespace, service.Name), maxAddressBytes)
}

// describeURL returns a URL without user and query, which may hold secrets.
func describeURL(address *url.URL) string {
	shown := url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}
	return conditions.Truncate(shown.String(), maxAddressBytes)
}

// find returns the current address.
func (l *location) find(ctx context.Context) (*target, error) {
	if l.config.Service == nil {
		return l.parseURL()
	}
	l.mu.Lock()
	found, expires := l.found, l.expires
	l.mu.Unlock()
	if found != nil && l.now().Before(expires) {
		return found, nil
	}
	found, err := l.resolve(ctx, l.config.Service)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found, l.expires = found, l.now().Add(maxAge)
	return found, nil
}

// forget makes the next call read the Service again.
func (l *location) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = nil
}

// describe returns an address for errors.
func (l *location) describe(t *target) string {
	if l.config.Service != nil {
		return fmt.Sprintf("%s (%s)", describeURL(t.url), l)
	}
	return describeURL(t.url)
}

func (l *location) parseURL() (*target, error) {
	if l.config.URL == nil {
		return nil, errors.New("clientConfig has no address: set url or service")
	}
	parsed, err := url.Parse(*l.config.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: clientConfig.url is no URL: correct it", l)
	case parsed.Scheme != "https" || parsed.Host == "":
		return nil, fmt.Errorf("%s: clientConfig.url must be https://<host>[:<port>]/<path>: correct it", l)
	case parsed.User != nil:
		return nil, fmt.Errorf("%s: clientConfig.url must not contain a user: remove it", l)
	}
	return &target{url: parsed}, nil
}

// resolve finds the address of a Service of the control plane.
func (l *location) resolve(ctx context.Context, reference *admissionregistrationv1.ServiceReference) (*target, error) {
	dnsName, port := reference.Name+"."+reference.Namespace+".svc", int32(defaultPort)
	if reference.Port != nil {
		port = *reference.Port
	}
	service, err := l.service(ctx, reference)
	if err != nil {
		return nil, err
	}
	host := dnsName
	if service != nil {
		if host, err = serviceHost(service, port); err != nil {
			return nil, err
		}
	}
	path := ""
	if reference.Path != nil {
		path = *reference.Path
	}
	return &target{
		url:        &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port))), Path: "/" + strings.TrimPrefix(path, "/")},
		serverName: dnsName,
	}, nil
}

// service returns nil if the Service is unknown.
func (l *location) service(ctx context.Context, reference *admissionregistrationv1.ServiceReference) (*corev1.Service, error) {
	if l.services == nil {
		return nil, nil
	}
	service, err := l.services(ctx, reference.Namespace, reference.Name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the Service: %w", err)
	}
	return service, nil
}

// serviceHost returns the host at which a Service of the control plane is called.
func serviceHost(service *corev1.Service, port int32) (string, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		if service.Spec.ExternalName == "" {
			return "", errors.New("it has no spec.externalName: set it")
		}
		return service.Spec.ExternalName, nil
	}
	if net.ParseIP(service.Spec.ClusterIP) == nil {
		return "", errors.New("it has no cluster IP: create a Service that is not headless, or set clientConfig.url")
	}
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == port {
			return service.Spec.ClusterIP, nil
		}
	}
	return "", fmt.Errorf("it has no port %d: add the port, or set clientConfig.service.port", port)
}
