package clusterstatus

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

func TestUnknownGroupVersions(t *testing.T) {
	metrics := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("down")}}
	tests := map[string]struct {
		err  error
		want map[string]bool
	}{
		"failed group versions": {fmt.Errorf("asking: %w", metrics), map[string]bool{"metrics.k8s.io/v1beta1": true, "metrics.k8s.io/v1": false, "apps/v1": false, "v1": false}},
		"failed discovery":      {errors.New("no answer"), map[string]bool{"apps/v1": true, "v1": true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for groupVersion, want := range test.want {
				if got := unknownGroupVersions(test.err)(groupVersion); got != want {
					t.Errorf("%s: unknown %t, want %t", groupVersion, got, want)
				}
			}
		})
	}
}
