package epoch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestCompareSnapshots(t *testing.T) {
	installed := Epoch{ID: "a", Cause: CauseInstalled}
	tests := map[string]struct {
		before, now Snapshot
		want        Comparison
	}{
		"a later version is the same storage":                     {Snapshot{installed, "100"}, Snapshot{installed, "101"}, SameStorage},
		"an equal version is the same storage":                    {Snapshot{installed, "100"}, Snapshot{installed, "100"}, SameStorage},
		"the first check has nothing to compare":                  {Snapshot{}, Snapshot{installed, "100"}, SameStorage},
		"the ConfigMap of a first start is no new epoch":          {Snapshot{Epoch{}, "100"}, Snapshot{installed, "101"}, SameStorage},
		"a restore begins another epoch":                          {Snapshot{installed, "100"}, Snapshot{Epoch{ID: "b", Cause: CauseRestored}, "50"}, AnotherEpoch},
		"also a restore that raised the revisions":                {Snapshot{installed, "100"}, Snapshot{Epoch{ID: "b", Cause: CauseRestored}, "1000000050"}, AnotherEpoch},
		"also in a storage that had no ConfigMap":                 {Snapshot{Epoch{}, "100"}, Snapshot{Epoch{ID: "b", Cause: CauseRestored}, "101"}, AnotherEpoch},
		"a ConfigMap that is gone is another epoch":               {Snapshot{installed, "100"}, Snapshot{Epoch{}, "101"}, AnotherEpoch},
		"a restore without a new ConfigMap decreases the version": {Snapshot{installed, "100"}, Snapshot{installed, "99"}, VersionDecreased},
		"also a storage without a ConfigMap":                      {Snapshot{Epoch{}, "100"}, Snapshot{Epoch{}, "99"}, VersionDecreased},
		"raised revisions without a new ConfigMap":                {Snapshot{installed, "100"}, Snapshot{installed, "1000000050"}, VersionJumped},
		"many writes are no jump":                                 {Snapshot{installed, "100"}, Snapshot{installed, "400000000"}, SameStorage},
		"a confirmation is no new epoch":                          {Snapshot{Epoch{ID: "b", Cause: CauseRestored}, "1"}, Snapshot{Epoch{ID: "b", Cause: CauseRestored, Confirmed: true}, "2"}, SameStorage},
		"a version that is not a number is ignored":               {Snapshot{installed, "x"}, Snapshot{installed, "1"}, SameStorage},
		"a missing version is ignored":                            {Snapshot{installed, "5"}, Snapshot{installed, ""}, SameStorage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CompareSnapshots(test.before, test.now); got != test.want {
				t.Errorf("change %d, want %d", got, test.want)
			}
		})
	}
}

func TestNeedsConfirmation(t *testing.T) {
	confirmedBy := func(id string) map[string]string {
		return map[string]string{clusterv1alpha1.ConfirmRestoreAnnotation: id}
	}
	restored := New("b", CauseRestored, time.Unix(0, 0), time.Unix(0, 0)).Data()
	tests := map[string]struct {
		data, annotations map[string]string
		want              bool
	}{
		"an empty ConfigMap":                    {nil, nil, true},
		"a first epoch needs no confirmation":   {New("a", CauseInstalled, time.Unix(0, 0), time.Time{}).Data(), nil, false},
		"a restored epoch needs confirmation":   {restored, nil, true},
		"a confirmed epoch needs none":          {restored, confirmedBy("b"), false},
		"the confirmation of another epoch":     {restored, confirmedBy("a"), true},
		"an empty confirmation":                 {map[string]string{clusterv1alpha1.EpochCauseKey: string(CauseRestored)}, confirmedBy(""), true},
		"a replaced storage needs confirmation": {New("b", CauseStorageReplaced, time.Unix(0, 0), time.Time{}).Data(), nil, true},
		"an unknown cause counts as a restore":  {map[string]string{clusterv1alpha1.EpochIDKey: "x", clusterv1alpha1.EpochCauseKey: "?"}, nil, true},
		"a missing cause counts as a restore":   {map[string]string{clusterv1alpha1.EpochIDKey: "x"}, nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Read(test.data, test.annotations).NeedsConfirmation(); got != test.want {
				t.Errorf("unconfirmed %t, want %t", got, test.want)
			}
		})
	}
}

func TestFollows(t *testing.T) {
	at := func(id string, cause Cause, hour int, confirmed bool) Epoch {
		e := New(id, cause, time.Unix(0, 0).Add(time.Duration(hour)*time.Hour), time.Time{})
		e.Confirmed = confirmed
		return e
	}
	installed, restored := at("a", CauseInstalled, 1, false), at("b", CauseRestored, 2, true)
	tests := map[string]struct {
		earlier, now Epoch
		want         bool
	}{
		"a restore that waits for a user":            {installed, at("b", CauseRestored, 2, false), true},
		"a storage that a component found replaced":  {installed, at("b", CauseStorageReplaced, 2, false), true},
		"a restore that a user confirmed since":      {installed, restored, true},
		"an epoch of an unknown cause waits":         {installed, at("b", "?", 0, false), true},
		"a ConfigMap that is gone":                   {installed, Epoch{}, false},
		"the same during a restore":                  {at("b", CauseRestored, 2, false), Epoch{}, false},
		"a first epoch, which another process began": {installed, at("c", CauseInstalled, 3, false), false},
		"a first epoch with an annotation":           {installed, at("c", CauseInstalled, 3, true), false},
		"the epoch before the replacement":           {installed, installed, false},
		"the same, confirmed once":                   {restored, restored, false},
		"an earlier confirmed epoch that came back":  {at("c", CauseRestored, 3, true), restored, false},
		"a first epoch that came back":               {restored, installed, false},
		"the first epoch of a storage without one":   {Epoch{}, installed, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.now.Follows(test.earlier); got != test.want {
				t.Errorf("follows %t, want %t", got, test.want)
			}
		})
	}
}

func TestMissingOrFirstEpochFollowsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, causes ...Cause) Epoch {
			return Epoch{
				ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, name+" id"), Cause: rapid.SampledFrom(causes).Draw(t, name+" cause"),
				BeganAt: rapid.SampledFrom([]string{"", "2030", "2031"}).Draw(t, name+" began"), Confirmed: rapid.Bool().Draw(t, name+" confirmed"),
			}
		}
		earlier, now := draw("earlier", CauseInstalled, CauseRestored, CauseStorageReplaced, CauseUnknown, ""), draw("now", CauseInstalled)
		if now.Follows(earlier) || (Epoch{}).Follows(earlier) {
			t.Errorf("%+v or a missing epoch follows %+v", now, earlier)
		}
	})
}

func TestMissingConfigMapNeedsNoConfirmation(t *testing.T) {
	if (Epoch{}).NeedsConfirmation() {
		t.Error("a storage without the ConfigMap waits for a confirmation")
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, cause := range []Cause{CauseRestored, CauseStorageReplaced, CauseUnknown} {
		if text := (Epoch{ID: long, Cause: cause, BackupTime: long, BeganAt: long}).HoldMessage(); len(text) > 1024 {
			t.Errorf("the message of %s has %d bytes", cause, len(text))
		}
	}
}

func TestMessageContainsBackupAndCommand(t *testing.T) {
	e := New("b", CauseRestored, time.Unix(0, 0), time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC))
	for _, part := range []string{
		"restored from a backup of 2030-05-01T12:00:00Z", "karmada restore --confirm",
		"kubectl annotate configmap karmada-epoch -n karmada-system --overwrite cluster.karmada.io/confirm-restore=b",
	} {
		if !strings.Contains(e.HoldMessage(), part) {
			t.Errorf("%q lacks %q", e.HoldMessage(), part)
		}
	}
}

func TestEpochRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := New(rapid.StringN(1, 40, -1).Draw(t, "id"), rapid.SampledFrom([]Cause{CauseInstalled, CauseRestored, CauseStorageReplaced}).Draw(t, "cause"),
			time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "began"), 0), time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "backup"), 0))
		if diff := cmp.Diff(written, Read(written.Data(), nil)); diff != "" {
			t.Errorf("epoch (-written +read):\n%s", diff)
		}
	})
}
