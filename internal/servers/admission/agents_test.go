package admission

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/agent"
)

func TestOneAgentDoesNotFillTheStore(t *testing.T) {
	events, requests := schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}
	tests := map[string]struct {
		user     string
		resource []schema.GroupResource
		hours    int
		want     int
	}{
		"Events at once":               {agent.User("east"), []schema.GroupResource{events}, 0, 500},
		"Events by both groups":        {agent.User("east"), []schema.GroupResource{events, {Group: "events.k8s.io", Resource: "events"}}, 0, 500},
		"Events in an hour":            {agent.User("east"), []schema.GroupResource{events}, 1, 500 + 1800},
		"certificates at once":         {agent.User("east"), []schema.GroupResource{requests}, 0, 10},
		"certificates in a day":        {agent.User("east"), []schema.GroupResource{requests}, 24, 10 + 288},
		"what has no quota":            {agent.User("east"), []schema.GroupResource{{Resource: "secrets"}}, 0, 3000},
		"components have no quota":     {"system:admin", []schema.GroupResource{events}, 0, 3000},
		"the generator is held to one": {agent.Generator, []schema.GroupResource{requests}, 0, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			quotas := NewAgentQuotas(func() time.Time { return now })
			admitted := 0
			for minute := range test.hours*60 + 1 {
				now = time.Unix(int64(60*minute), 0)
				for i := range 3000 {
					if quotas.admit(test.user, test.resource[i%len(test.resource)]) == nil {
						admitted++
					}
				}
			}
			if admitted != test.want {
				t.Errorf("%d were admitted, want %d", admitted, test.want)
			}
			if err := quotas.admit(agent.User("west"), test.resource[0]); err != nil {
				t.Errorf("another agent pays for it: %v", err)
			}
		})
	}
}
