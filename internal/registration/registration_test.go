package registration

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func newCluster(name, id string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	return clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode},
	}
}

func TestCheckNotRegistered(t *testing.T) {
	existing := []clusterv1alpha1.Cluster{
		newCluster("west", "id-1", clusterv1alpha1.Push), newCluster("east", "id-2", clusterv1alpha1.Push), newCluster("pulled", "id-3", clusterv1alpha1.Pull),
	}
	tests := map[string]struct {
		name, id string
		want     string
		same     bool
	}{
		"neither the name nor the ID is registered": {name: "north", id: "id-4"},
		"the same cluster is registered in push mode": {
			name: "east", id: "id-2", same: true,
			want: `the cluster ID id-2 or the cluster name east has been registered: Cluster "east" is this very cluster, in Push mode; it is registered and nothing was changed`,
		},
		"the same cluster is registered in pull mode": {
			name: "pulled", id: "id-3", same: true,
			want: `the cluster ID id-3 or the cluster name pulled has been registered: Cluster "pulled" is this very cluster, in Pull mode; it is registered and nothing was changed`,
		},
		"another cluster has the name": {
			name: "east", id: "id-4",
			want: `the cluster ID id-4 or the cluster name east has been registered: Cluster "east" is another cluster, with ID id-2; choose another name, or unjoin that one first; if that cluster was rebuilt, accept it and try again: kubectl patch cluster east --type=merge -p '{"spec":{"id":"id-4"}}'`,
		},
		"the cluster is registered under another name": {
			name: "north", id: "id-2",
			want: `the cluster ID id-2 or the cluster name north has been registered: this cluster is registered as Cluster "east"; use that one, or unjoin it first`,
		},
		"a duplicate name is reported before a duplicate ID": {
			name: "east", id: "id-1",
			want: `the cluster ID id-1 or the cluster name east has been registered: Cluster "east" is another cluster, with ID id-2; choose another name, or unjoin that one first; if that cluster was rebuilt, accept it and try again: kubectl patch cluster east --type=merge -p '{"spec":{"id":"id-1"}}'`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := EnsureNotRegistered(existing, test.name, test.id)
			if test.want == "" {
				if err != nil {
					t.Fatalf("unexpected error: %v", err)
				}
				return
			}
			var taken *RegisteredError
			if !errors.As(err, &taken) {
				t.Fatalf("got %v, want a RegisteredError", err)
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
			if taken.IsSameCluster() != test.same {
				t.Errorf("Same() = %t", taken.IsSameCluster())
			}
		})
	}
}

func TestValidateName(t *testing.T) {
	tests := map[string]struct {
		name string
		want string
	}{
		"a DNS label":              {"east-1", ""},
		"48 characters":            {strings.Repeat("a", 48), ""},
		"49 characters":            {strings.Repeat("a", 49), "48"},
		"no name":                  {"", "the cluster needs a name"},
		"upper case":               {"East", "RFC 1123 label"},
		"a dot, as in a subdomain": {"east.1", "must not contain dots"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := ValidateName(test.name)
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	for host, want := range map[string]string{
		"https://east:6443": "https://east:6443", "http://east": "http://east", "10.0.0.1:6443": "https://10.0.0.1:6443",
	} {
		if got := Endpoint(&rest.Config{Host: host}); got != want {
			t.Errorf("endpoint(%q) = %q, want %q", host, got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	request := func(err error) error { return &url.Error{Op: "Get", URL: "https://east", Err: err} }

	tests := map[string]struct {
		err  error
		want string
	}{
		"connection refused":      {request(syscall.ECONNREFUSED), "No response from it: "},
		"no response in time":     {request(context.DeadlineExceeded), "No response from it: "},
		"unknown authority":       {request(x509.UnknownAuthorityError{}), "The certificate of it is not trusted: "},
		"wrong credentials":       {apierrors.NewUnauthorized("no"), "The credentials for it are wrong or have expired: "},
		"a missing permission":    {apierrors.NewForbidden(roles, "r", errors.New("no")), "The user for it lacks the permission named above: "},
		"a terminating namespace": {terminating, "The namespace is being deleted: "},
		"a canceled request":      {request(context.Canceled), ""},
		"an error without advice": {apierrors.NewBadRequest("the name is too long"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Advice(fmt.Errorf("doing it: %w", test.err), "it")
			if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
