package side_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side"
)

func TestAnErrorNamesSideAddressAndObject(t *testing.T) {
	member, err := side.Member("east", &rest.Config{Host: "https://10.0.0.1:6443"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cause := apierrors.NewUnauthorized("no")
	got := member.Explain("creating", registration.Account("karmada-cluster", "karmada-east"), cause)
	if !errors.Is(got, cause) {
		t.Error("the cause is lost")
	}
	want := `creating ServiceAccount karmada-cluster/karmada-east in member "east" (https://10.0.0.1:6443): no` + "\n" +
		`The credentials for member "east" are wrong or have expired: get a new kubeconfig.`
	if got.Error() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
