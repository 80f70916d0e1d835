package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsHaveTheNamesAndLabelsThatDashboardsKnow(t *testing.T) {
	registry := prometheus.NewRegistry()
	c, err := newCounters(registry)
	if err != nil {
		t.Fatal(err)
	}
	web, refused := object(func(map[string]any) {}), errors.New("refused")
	c.create("m1", web, false, nil)
	c.create("m1", web, true, refused)
	c.update("m1", web, updateDone, nil)
	c.update("m1", web, updateUnchanged, nil)
	c.update("m2", web, updateFailed, refused)
	c.delete("m1", web, nil)
	c.delete("m1", web, nil)
	const want = `
# HELP create_resource_to_cluster Number of objects created in member clusters.
# TYPE create_resource_to_cluster counter
create_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",recreate="false",result="success"} 1
create_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",recreate="true",result="error"} 1
# HELP delete_resource_from_cluster Number of objects deleted from member clusters.
# TYPE delete_resource_from_cluster counter
delete_resource_from_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",result="success"} 2
# HELP update_resource_to_cluster Number of updates of objects in member clusters.
# TYPE update_resource_to_cluster counter
update_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",operationResult="unchanged",result="success"} 1
update_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",operationResult="updated",result="success"} 1
update_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m2",operationResult="none",result="error"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	c.sync(time.Now(), nil)
	c.sync(time.Now(), []error{refused})
	if got := testutil.CollectAndCount(c.synced, "work_sync_workload_duration_seconds"); got != 2 {
		t.Errorf("%d results are told apart", got)
	}
}

func TestAnotherControlPlaneInTheProcessSharesTheMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := newCounters(registry)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newCounters(registry)
	if err != nil {
		t.Fatal(err)
	}
	first.delete("m1", object(func(map[string]any) {}), nil)
	second.delete("m1", object(func(map[string]any) {}), nil)
	if got := testutil.ToFloat64(first.deleted); got != 2 {
		t.Errorf("counted %v", got)
	}
}
