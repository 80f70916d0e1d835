package dependencies

import "testing"

func TestConflictIsRecordedOnce(t *testing.T) {
	type step struct {
		message string
		written bool
		record  bool
	}
	for name, steps := range map[string][]step{
		"a conflict of the first reconcile is not recorded": {{"differ", false, false}, {"differ", false, false}},
		"a conflict of our own write is recorded":           {{"differ", true, true}, {"differ", false, false}, {"differ", true, false}},
		"another reconcile may see the write first":         {{"differ", false, false}, {"differ", true, true}, {"differ", true, false}},
		"a new conflict is recorded without a write":        {{"", false, false}, {"differ", false, true}, {"differ", true, false}},
		"another conflict is recorded":                      {{"differ", true, true}, {"differ more", false, true}, {"differ more", true, false}},
		"the end and the next conflict are recorded":        {{"differ", true, true}, {"", false, true}, {"differ", false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newConflicts()
			for i, step := range steps {
				if record := q.shouldRecord("uid", step.message, step.written); record != step.record {
					t.Errorf("step %d: recorded %t", i, record)
				}
			}
		})
	}
}
