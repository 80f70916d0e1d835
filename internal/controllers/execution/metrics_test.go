package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricNamesAndLabels(t *testing.T) {
	registry := prometheus.NewRegistry()
	c, err := newWriteMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	web, rejected := newDeployment(func(map[string]any) {}), errors.New("rejected")
	c.countCreate("m1", web, false, nil)
	c.countCreate("m1", web, true, rejected)
	c.countUpdate("m1", web, updateDone, nil)
	c.countUpdate("m1", web, updateUnchanged, nil)
	c.countUpdate("m2", web, updateFailed, rejected)
	c.countDelete("m1", web, nil)
	c.countDelete("m1", web, nil)
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
	c.observeSync(time.Now(), nil)
	c.observeSync(time.Now(), []error{rejected})
	if got := testutil.CollectAndCount(c.syncDuration, "work_sync_workload_duration_seconds"); got != 2 {
		t.Errorf("%d values of the result label", got)
	}
}

func TestMetricsAreSharedByControlPlanesOfOneProcess(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := newWriteMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newWriteMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	first.countDelete("m1", newDeployment(func(map[string]any) {}), nil)
	second.countDelete("m1", newDeployment(func(map[string]any) {}), nil)
	if got := testutil.ToFloat64(first.deletes); got != 2 {
		t.Errorf("counted %v", got)
	}
}
