package objectcache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

func TestThePageSizeGrowsAgainAfterATooLargePage(t *testing.T) {
	m := newFakeMember(t)
	// A response has at most 4 MiB. The first two objects have 3 MiB each.
	for i := range 14 {
		m.put("configmaps", "default", fmt.Sprintf("c%02d", i), "1")
		if i < 2 {
			m.fill("configmaps", "default", fmt.Sprintf("c%02d", i), strings.Repeat("x", 3<<20))
		}
	}
	c := newControl(t, objectcache.Options{PageSize: 8}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	c.eventually(func() string {
		if source := c.source("m1", "ConfigMap"); source == nil || source.Len() != 14 {
			return "not all objects are cached"
		}
		return ""
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	// Pages of 8 and 2 objects are too large.
	if diff := cmp.Diff([]int{8, 2, 1, 2, 4, 8}, m.limits); diff != "" {
		t.Errorf("page sizes (-want +got):\n%s", diff)
	}
}
