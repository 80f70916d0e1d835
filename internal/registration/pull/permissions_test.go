package pull

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

var (
	errForbidden = apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), "east", errors.New("no right"))
	errOverload  = apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
)

func TestAwaitPermissions(t *testing.T) {
	until := func(end time.Duration, err error) func(time.Duration) error {
		return func(passed time.Duration) error {
			if passed < end {
				return err
			}
			return nil
		}
	}
	tests := map[string]struct {
		exists bool
		// get returns the error for a read of the Cluster at the given time since the start.
		// grantedFrom is the time since the start at which the agent gets its permissions.
		get         func(passed time.Duration) error
		grantedFrom time.Duration

		wantMissing, wantErr string
		wantTime             time.Duration
	}{
		"granted":                       {get: until(0, nil)},
		"granted later":                 {get: until(time.Second, errForbidden), grantedFrom: 2 * time.Second, wantTime: 2500 * time.Millisecond},
		"granted after failed requests": {get: until(time.Second, errOverload), wantTime: 1500 * time.Millisecond},
		"not granted":                   {get: until(time.Hour, errForbidden), wantMissing: permissionToGetCluster, wantTime: permissionsTimeout},
		"another permission is missing": {get: until(0, nil), grantedFrom: time.Hour, wantMissing: `get clusters "east"`, wantTime: permissionsTimeout},
		"all requests fail":             {get: until(time.Hour, errOverload), wantErr: "etcdserver: request timed out", wantTime: permissionsTimeout},
		"the name is taken":             {exists: true, get: until(0, nil), wantErr: "east"},
		"the name is taken, found after failed requests": {exists: true, get: until(time.Second, errOverload), wantErr: "east", wantTime: 1500 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var objects []client.Object
				if test.exists {
					existing := clusterclienttest.NewCluster("east", "other", clusterv1alpha1.Pull)
					objects = append(objects, &existing)
				}
				began := time.Now()
				karmada := clusterclienttest.NewClient(t, "", objects...)
				karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
					Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
						if err := test.get(time.Since(began)); err != nil {
							return err
						}
						return api.Get(ctx, key, into, options...)
					},
					Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
						object.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = time.Since(began) >= test.grantedFrom
						return nil
					},
				})
				i := &agentIdentity{register: Register{Name: "east", ClusterNamespace: "karmada-cluster"}, id: "id", karmada: karmada}
				missing, err := i.awaitPermissions(t.Context())
				if missing != test.wantMissing {
					t.Errorf("missing permission %q, want %q", missing, test.wantMissing)
				}
				if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
				var registered *registration.RegisteredError
				if errors.As(err, &registered) != test.exists {
					t.Errorf("error %v, want a RegisteredError: %t", err, test.exists)
				}
				if passed := time.Since(began); passed > max(test.wantTime, time.Millisecond) || passed < test.wantTime-time.Second {
					t.Errorf("returned after %s, want %s", passed, test.wantTime)
				}
			})
		})
	}
}

func TestRejectedEndpointIsOmitted(t *testing.T) {
	invalid := func(name string) error {
		path := field.NewPath("spec", name)
		return apierrors.NewInvalid(clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind(), "east", field.ErrorList{field.Forbidden(path, "not allowed")})
	}
	tests := map[string]struct {
		// reject returns the error for a Cluster with the given address.
		reject   func(endpoint string) error
		wantFlag string
		wantErr  string
	}{
		"accepted": {reject: func(string) error { return nil }, wantFlag: "--cluster-api-endpoint=https://127.0.0.1:6443"},
		"rejected": {reject: func(endpoint string) error {
			if endpoint == "" {
				return nil
			}
			return invalid("apiEndpoint")
		}, wantFlag: "--cluster-api-endpoint="},
		"rejected for another reason": {reject: func(string) error { return invalid("proxyURL") }, wantErr: "spec.proxyURL"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := clusterclienttest.NewClient(t, "")
			karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					return test.reject(object.(*clusterv1alpha1.Cluster).Spec.APIEndpoint)
				},
			})
			register := Register{Name: "east", Member: &rest.Config{Host: "https://127.0.0.1:6443"}}
			identity := &agentIdentity{register: register, id: "id", karmada: karmada}
			err := identity.dryRunCluster(t.Context())
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got %v, want %q", err, test.wantErr)
			}
			register.omitEndpoint = identity.omitEndpoint
			if command := register.agentCommand(); test.wantErr == "" && !slices.Contains(command, test.wantFlag) {
				t.Errorf("the command %v does not contain %s", command, test.wantFlag)
			}
		})
	}
}
