package kubelib

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/resource"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

const (
	// maxQuantity is the maximum length of the text of a quantity, in bytes.
	maxQuantity = 128
	// maxExponent is the largest exponent of a quantity. Calculations with a larger one would
	// need numbers with as many digits.
	maxExponent = 100
	// quantitySteps are the steps of one calculation with a quantity, and quantityBytes are its
	// bytes.
	quantitySteps = 16
	quantityBytes = 256
)

// resourceAdd is kube.resourceAdd(quantity, …). It returns the exact sum, in the format of the first
// quantity that is not 0. nil is 0.
func resourceAdd(state *lua.LState) int {
	var sum resource.Quantity
	for i := 1; i <= state.GetTop(); i++ {
		sum.Add(checkQuantity(state, "resourceAdd", i))
	}
	result := sum.String()
	stdlib.HostOf(state).String(len(result))
	state.Push(lua.LString(result))
	return 1
}

// resourceQuantity is kube.getResourceQuantity(quantity). It returns an approximate number. nil is 0.
func resourceQuantity(state *lua.LState) int {
	checkCount(state, "getResourceQuantity", 1)
	quantity := checkQuantity(state, "getResourceQuantity", 1)
	number := quantity.AsApproximateFloat64()
	if number < 0 || math.IsInf(number, 0) {
		raise(state, "getResourceQuantity", 1, fmt.Errorf("the quantity %s is negative or infinite", quantity.String()))
	}
	state.Push(lua.LNumber(number))
	return 1
}

// checkQuantity returns the argument with the number n. It raises an error for malformed quantities.
func checkQuantity(state *lua.LState, function string, n int) resource.Quantity {
	host := stdlib.HostOf(state)
	host.Step(quantitySteps)
	host.Allocate(quantityBytes)
	switch value := state.Get(n).(type) {
	case *lua.LNilType:
		return resource.Quantity{}
	case lua.LString:
		quantity, err := parseQuantity(string(value))
		if err != nil {
			raise(state, function, n, err)
		}
		return quantity
	default:
		raise(state, function, n, fmt.Errorf("a quantity is a string such as \"500m\", not a %s", value.Type()))
		return resource.Quantity{}
	}
}

func parseQuantity(text string) (resource.Quantity, error) {
	if err := checkBounds(text); err != nil {
		return resource.Quantity{}, err
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("%q is not a quantity: %w", text, err)
	}
	return quantity, nil
}

// checkBounds returns an error for a quantity with which calculations would be expensive.
func checkBounds(quantity string) error {
	if len(quantity) > maxQuantity {
		return fmt.Errorf("a quantity has more than %d characters", maxQuantity)
	}
	mark := strings.LastIndexAny(quantity, "eE")
	if mark < 0 {
		return nil
	}
	exponent, err := strconv.Atoi(quantity[mark+1:])
	if errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent {
		return fmt.Errorf("the exponent of the quantity %q is out of range: the limit is %d", quantity, maxExponent)
	}
	return nil // ParseQuantity rejects a malformed exponent
}
