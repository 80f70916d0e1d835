package hook

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

func newReference(port int32, path string) *admissionregistrationv1.ServiceReference {
	reference := &admissionregistrationv1.ServiceReference{Namespace: "example-system", Name: "workloads", Port: &port}
	if port == 0 {
		reference.Port = nil
	}
	if path != "" {
		reference.Path = &path
	}
	return reference
}

func newService(serviceType corev1.ServiceType, clusterIP, externalName string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "example-system", Name: "workloads"},
		Spec:       corev1.ServiceSpec{Type: serviceType, ClusterIP: clusterIP, ExternalName: externalName, Ports: []corev1.ServicePort{{Port: 80}, {Port: 443}}},
	}
}

func TestAddressOfService(t *testing.T) {
	resource := schema.GroupResource{Resource: "services"}
	tests := map[string]struct {
		service *corev1.Service
		err     error
		port    int32
		want    string
		fails   string
	}{
		"a cluster IP":                       {service: newService(corev1.ServiceTypeClusterIP, "10.0.0.1", ""), want: "https://10.0.0.1:443/x"},
		"another port":                       {service: newService(corev1.ServiceTypeClusterIP, "10.0.0.1", ""), port: 80, want: "https://10.0.0.1:80/x"},
		"an IPv6 address":                    {service: newService(corev1.ServiceTypeClusterIP, "fd00::1", ""), want: "https://[fd00::1]:443/x"},
		"a Service without a type":           {service: newService("", "10.0.0.1", ""), want: "https://10.0.0.1:443/x"},
		"a node port":                        {service: newService(corev1.ServiceTypeNodePort, "10.0.0.1", ""), want: "https://10.0.0.1:443/x"},
		"a load balancer":                    {service: newService(corev1.ServiceTypeLoadBalancer, "10.0.0.1", ""), want: "https://10.0.0.1:443/x"},
		"a port that the Service lacks":      {service: newService(corev1.ServiceTypeClusterIP, "10.0.0.1", ""), port: 8443, fails: "it has no port 8443: add the port"},
		"a headless Service":                 {service: newService(corev1.ServiceTypeClusterIP, "None", ""), fails: "it has no cluster IP: create a Service that is not headless"},
		"a Service without an IP":            {service: newService(corev1.ServiceTypeClusterIP, "", ""), fails: "it has no cluster IP"},
		"an external name":                   {service: newService(corev1.ServiceTypeExternalName, "", "web.example.io"), port: 8443, want: "https://web.example.io:8443/x"},
		"an empty external name":             {service: newService(corev1.ServiceTypeExternalName, "", ""), fails: "it has no spec.externalName"},
		"an unknown Service":                 {err: apierrors.NewNotFound(resource, "workloads"), want: "https://workloads.example-system.svc:443/x"},
		"a Service that may not be read":     {err: apierrors.NewForbidden(resource, "workloads", nil), want: "https://workloads.example-system.svc:443/x"},
		"a Service that could not be read":   {err: errors.New("timeout"), fails: "Service example-system/workloads: reading the Service: timeout"},
		"an unknown Service on another port": {err: apierrors.NewNotFound(resource, "workloads"), port: 8443, want: "https://workloads.example-system.svc:8443/x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &location{
				config: admissionregistrationv1.WebhookClientConfig{Service: newReference(test.port, "x")}, now: time.Now,
				services: func(context.Context, string, string) (*corev1.Service, error) { return test.service, test.err },
			}
			found, err := l.find(t.Context())
			if test.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "Service example-system/workloads: ") || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("err = %v, want %s", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found.url.String() != test.want || found.serverName != "workloads.example-system.svc" {
				t.Errorf("address %s of %s, want %s", found.url, found.serverName, test.want)
			}
			if text := l.describe(found); text != test.want+" (Service example-system/workloads)" {
				t.Errorf("in errors the address is %s", text)
			}
		})
	}
}

func TestAddressOfURL(t *testing.T) {
	tests := map[string]struct {
		address     *string
		want, fails string
	}{
		"a URL":                          {address: new("https://web.example.io/x?token=a"), want: "https://web.example.io/x"},
		"HTTP":                           {address: new("http://web.example.io/x"), fails: "http://web.example.io/x: clientConfig.url must be https://"},
		"no host":                        {address: new("https:///x"), fails: "clientConfig.url must be https://"},
		"no URL":                         {address: new("https://web.example.io:port"), fails: "clientConfig.url is no URL"},
		"a password, which is not shown": {address: new("https://a:secret@web.example.io"), fails: "https://web.example.io: clientConfig.url must not contain a user"},
		"neither URL nor Service":        {fails: "clientConfig has no address: set url or service"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &location{config: admissionregistrationv1.WebhookClientConfig{URL: test.address}, now: time.Now}
			found, err := l.find(t.Context())
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "secret") {
					t.Errorf("err = %v, want %s", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found.url.String() != *test.address || l.describe(found) != test.want {
				t.Errorf("address %s, shown as %s", found.url, l.describe(found))
			}
		})
	}
}
