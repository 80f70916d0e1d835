package main

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func servicesOfTest() client.Client {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}
	}
	etcd0, etcd1, ready, starting := "etcd-0", "etcd-1", true, false
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&corev1.Service{ObjectMeta: meta("webhook", nil), Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}},
		&corev1.Service{ObjectMeta: meta("etcd", nil), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&discoveryv1.EndpointSlice{ObjectMeta: meta("etcd-x", map[string]string{discoveryv1.LabelServiceName: "etcd"}), Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.244.0.2"}, Hostname: &etcd0, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
			{Addresses: []string{"10.244.0.3"}, Hostname: &etcd1, Conditions: discoveryv1.EndpointConditions{Ready: &starting}},
		}},
	).Build()
}

func TestNamesOfServices(t *testing.T) {
	tests := map[string]struct {
		name  string
		kind  dnsmessage.Type
		code  dnsmessage.RCode
		wants []string
	}{
		"a Service has its address":                {"webhook.ns.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, []string{"10.96.0.7"}},
		"the case of letters does not matter":      {"Webhook.NS.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, []string{"10.96.0.7"}},
		"a Service has no IPv6 address":            {"webhook.ns.svc.cluster.local.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, nil},
		"a headless Service has its ready Pods":    {"etcd.ns.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, []string{"10.244.0.2"}},
		"a Pod of a headless Service has a name":   {"etcd-0.etcd.ns.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, []string{"10.244.0.2"}},
		"a Pod that is not ready has no name":      {"etcd-1.etcd.ns.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
		"a Service of another namespace is not it": {"webhook.other.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
		"a name that a search domain extended":     {"webhook.ns.svc.cluster.local.ns.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
		"a name outside of the cluster":            {"example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			query := dnsmessage.Message{Header: dnsmessage.Header{ID: 5}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(test.name), Type: test.kind, Class: dnsmessage.ClassINET}}}
			packed, err := query.Pack()
			if err != nil {
				t.Fatal(err)
			}
			response := dnsmessage.Message{}
			if err := response.Unpack(answer(t.Context(), servicesOfTest(), packed)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, record := range response.Answers {
				got = append(got, netip.AddrFrom4(record.Body.(*dnsmessage.AResource).A).String())
			}
			if response.ID != 5 || response.RCode != test.code || !cmp.Equal(got, test.wants) {
				t.Errorf("got %v with code %v and ID %d", got, response.RCode, response.ID)
			}
		})
	}
}

func TestMalformedQueriesHaveNoResponse(t *testing.T) {
	if got := answer(t.Context(), servicesOfTest(), []byte("no query")); got != nil {
		t.Errorf("got %q", got)
	}
}
