"""Textbook models of many sciences, as people bring them to a calibration.

A method that is judged on one kind of curve is judged on that curve. Here are saturating, growing, decaying,
oscillating and linear ones, with one and two inputs, in physical units, and with parameters that data determine well,
badly or only together. A formula is written once, over the array library of its inputs: NumPy finds the target with it,
JAX calibrates it. All parameters are positive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from l2calib.numerics.namespace import namespace_of


@dataclass(frozen=True)
class TextbookModel:
    """A formula of named inputs and parameters, the range of its inputs and usual values of its parameters."""

    function: Callable[..., Any]
    science: str
    inputs: Mapping[str, tuple[float, float]]
    typical: Mapping[str, float]

    @property
    def name(self) -> str:
        return self.function.__name__


def michaelis_menten(substrate: Any, vmax: Any, km: Any) -> Any:
    return vmax * substrate / (km + substrate)


def logistic_growth(time: Any, capacity: Any, initial: Any, rate: Any) -> Any:
    xp = namespace_of(time)
    return capacity / (1 + (capacity / initial - 1) * xp.exp(-rate * time))


def gompertz(day: Any, asymptote: Any, displacement: Any, rate: Any) -> Any:
    xp = namespace_of(day)
    return asymptote * xp.exp(-displacement * xp.exp(-rate * day))


def decay_with_offset(time: Any, amplitude: Any, rate: Any, offset: Any) -> Any:
    return amplitude * namespace_of(time).exp(-rate * time) + offset


def arrhenius(kelvin: Any, rate320: Any, activation: Any) -> Any:
    """The activation energy in kJ/mol; the rate at 320 K instead of the one at an infinite temperature."""
    return rate320 * namespace_of(kelvin).exp(activation / 8.314e-3 * (1 / 320 - 1 / kelvin))


def langmuir(pressure: Any, capacity: Any, affinity: Any) -> Any:
    return capacity * affinity * pressure / (1 + affinity * pressure)


def hill(dose: Any, emax: Any, ec50: Any, slope: Any) -> Any:
    return emax / (1 + (ec50 / dose) ** slope)


def bateman(hour: Any, level: Any, absorption: Any, elimination: Any) -> Any:
    """Absorbed and eliminated at first order, in a form that has a value where the two rates agree."""
    xp = namespace_of(hour)
    z = ((absorption - elimination) * hour / 2) ** 2
    near = abs(z) < 1e-2
    root = xp.sqrt(xp.where(near, 1.0, z))
    ratio = xp.where(near, 1 + z / 6 * (1 + z / 20 * (1 + z / 42 * (1 + z / 72))), xp.sinh(root) / root)
    return level * absorption * hour * ratio * xp.exp(-(absorption + elimination) * hour / 2)


def damped_oscillation(second: Any, amplitude: Any, damping: Any, frequency: Any) -> Any:
    xp = namespace_of(second)
    return amplitude * xp.exp(-damping * second) * xp.cos(frequency * second)


def light_response(light: Any, efficiency: Any, ceiling: Any, respiration: Any) -> Any:
    return efficiency * light * ceiling / (efficiency * light + ceiling) - respiration


def drag(speed: Any, coefficient: Any, exponent: Any) -> Any:
    return coefficient * speed**exponent


def van_genuchten(suction: Any, saturated: Any, scale: Any, shape: Any) -> Any:
    """The water that a soil holds; `shape` is the usual n less one, and the residual water is known."""
    residual, n = 0.05, 1 + shape
    return residual + (saturated - residual) * (1 + (scale * suction) ** n) ** (-shape / n)


def freundlich(concentration: Any, capacity: Any, intensity: Any) -> Any:
    return capacity * concentration ** (1 / intensity)


def stretched_relaxation(second: Any, amplitude: Any, lifetime: Any, stretching: Any) -> Any:
    return amplitude * namespace_of(second).exp(-((second / lifetime) ** stretching))


def oxygen_demand(day: Any, ultimate: Any, rate: Any) -> Any:
    return -ultimate * namespace_of(day).expm1(-rate * day)


def ricker(spawners: Any, productivity: Any, optimum: Any) -> Any:
    return productivity * spawners * namespace_of(spawners).exp(-spawners / optimum)


def van_deemter(velocity: Any, eddies: Any, diffusion: Any, transfer: Any) -> Any:
    """The height of a plate in a chromatograph, linear in its parameters."""
    return eddies + diffusion / velocity + transfer * velocity


def herschel_bulkley(shear: Any, yield_stress: Any, consistency: Any, index: Any) -> Any:
    return yield_stress + consistency * shear**index


def two_compartments(hour: Any, fast: Any, fast_rate: Any, slow: Any, slow_rate: Any) -> Any:
    xp = namespace_of(hour)
    return fast * xp.exp(-fast_rate * hour) + slow * xp.exp(-slow_rate * hour)


def four_parameter_curve(dose: Any, bottom: Any, span: Any, ec50: Any, slope: Any) -> Any:
    return bottom + span / (1 + (ec50 / dose) ** slope)


def competitive_adsorption(first: Any, second: Any, capacity: Any, affinity: Any, rival_affinity: Any) -> Any:
    return capacity * affinity * first / (1 + affinity * first + rival_affinity * second)


def inhibited_growth(substrate: Any, inhibitor: Any, fastest: Any, saturation: Any, inhibition: Any) -> Any:
    return fastest * substrate / (saturation + substrate) * inhibition / (inhibition + inhibitor)


def newton_cooling(minute: Any, ambient: Any, hot: Any, rate: Any) -> Any:
    return ambient + (hot - ambient) * namespace_of(minute).exp(-rate * minute)


def bolus(dose: Any, hour: Any, volume: Any, clearance: Any) -> Any:
    """The concentration of a drug in the blood after an injection."""
    return dose / volume * namespace_of(hour).exp(-clearance / volume * hour)


def catalyst(acid: Any, alcohol: Any, rate: Any, acid_affinity: Any, alcohol_affinity: Any) -> Any:
    """Langmuir and Hinshelwood: both partial pressures speed the reaction up and block the surface."""
    acid_covered, alcohol_covered = acid_affinity * acid, alcohol_affinity * alcohol
    return rate * acid_covered * alcohol_covered / (1 + acid_covered + alcohol_covered) ** 2


def cobb_douglas(capital: Any, labour: Any, productivity: Any, capital_share: Any, labour_share: Any) -> Any:
    return productivity * capital**capital_share * labour**labour_share


def underwater_light(depth: Any, chlorophyll: Any, surface: Any, water: Any, algae: Any) -> Any:
    """Beer and Lambert, in water that has some of the absorber."""
    return surface * namespace_of(depth).exp(-(water + algae * chlorophyll) * depth)


def predation(prey: Any, predators: Any, attack: Any, handling: Any, interference: Any) -> Any:
    """Beddington and DeAngelis: prey eaten per predator and day."""
    return attack * prey / (1 + attack * handling * prey + interference * predators)


def warm_growth(substrate: Any, celsius: Any, rate20: Any, saturation: Any, q10: Any) -> Any:
    return rate20 * substrate / (saturation + substrate) * q10 ** ((celsius - 20) / 10)


MODELS: dict[str, TextbookModel] = {
    model.name: model
    for model in (
        TextbookModel(michaelis_menten, "enzymes", {"substrate": (0, 16)}, {"vmax": 12, "km": 2}),
        TextbookModel(logistic_growth, "ecology", {"time": (0, 12)}, {"capacity": 100, "initial": 6, "rate": 0.7}),
        TextbookModel(gompertz, "botany", {"day": (0, 20)}, {"asymptote": 50, "displacement": 4, "rate": 0.3}),
        TextbookModel(decay_with_offset, "physics", {"time": (0, 10)}, {"amplitude": 8, "rate": 0.5, "offset": 2}),
        TextbookModel(arrhenius, "kinetics", {"kelvin": (290, 350)}, {"rate320": 2, "activation": 50}),
        TextbookModel(langmuir, "adsorption", {"pressure": (0, 10)}, {"capacity": 5, "affinity": 0.6}),
        TextbookModel(hill, "pharmacology", {"dose": (0.5, 100)}, {"emax": 100, "ec50": 15, "slope": 1.8}),
        TextbookModel(bateman, "pharmacology", {"hour": (0, 24)}, {"level": 8, "absorption": 1, "elimination": 0.15}),
        TextbookModel(
            damped_oscillation, "mechanics", {"second": (0, 6)}, {"amplitude": 3, "damping": 0.3, "frequency": 2}
        ),
        TextbookModel(
            light_response, "botany", {"light": (0, 2000)}, {"efficiency": 0.06, "ceiling": 30, "respiration": 3}
        ),
        TextbookModel(drag, "mechanics", {"speed": (0.5, 10)}, {"coefficient": 1.2, "exponent": 1.6}),
        TextbookModel(
            van_genuchten, "soil science", {"suction": (1, 500)}, {"saturated": 0.45, "scale": 0.03, "shape": 0.8}
        ),
        TextbookModel(freundlich, "adsorption", {"concentration": (0.2, 50)}, {"capacity": 3, "intensity": 2}),
        TextbookModel(
            stretched_relaxation,
            "materials",
            {"second": (0.05, 10)},
            {"amplitude": 6, "lifetime": 2.5, "stretching": 0.7},
        ),
        TextbookModel(oxygen_demand, "waste water", {"day": (0, 20)}, {"ultimate": 200, "rate": 0.23}),
        TextbookModel(ricker, "fisheries", {"spawners": (0, 200)}, {"productivity": 3, "optimum": 60}),
        TextbookModel(
            van_deemter, "chromatography", {"velocity": (0.5, 10)}, {"eddies": 1.5, "diffusion": 4, "transfer": 0.4}
        ),
        TextbookModel(
            herschel_bulkley, "rheology", {"shear": (1, 100)}, {"yield_stress": 6, "consistency": 2, "index": 0.6}
        ),
        TextbookModel(
            two_compartments,
            "pharmacology",
            {"hour": (0, 12)},
            {"fast": 10, "fast_rate": 1.8, "slow": 5, "slow_rate": 0.15},
        ),
        TextbookModel(
            four_parameter_curve,
            "toxicology",
            {"dose": (0.1, 100)},
            {"bottom": 15, "span": 80, "ec50": 12, "slope": 1.4},
        ),
        TextbookModel(
            competitive_adsorption,
            "adsorption",
            {"first": (0, 10), "second": (0, 10)},
            {"capacity": 5, "affinity": 0.7, "rival_affinity": 0.5},
        ),
        TextbookModel(
            inhibited_growth,
            "microbiology",
            {"substrate": (0, 20), "inhibitor": (0, 10)},
            {"fastest": 1.2, "saturation": 3, "inhibition": 4},
        ),
        TextbookModel(newton_cooling, "physics", {"minute": (0, 60), "ambient": (5, 30)}, {"hot": 85, "rate": 0.05}),
        TextbookModel(bolus, "pharmacology", {"dose": (10, 100), "hour": (0, 12)}, {"volume": 20, "clearance": 4}),
        TextbookModel(
            catalyst,
            "catalysis",
            {"acid": (0, 6), "alcohol": (0, 6)},
            {"rate": 10, "acid_affinity": 0.8, "alcohol_affinity": 0.4},
        ),
        TextbookModel(
            cobb_douglas,
            "economics",
            {"capital": (1, 20), "labour": (1, 20)},
            {"productivity": 2, "capital_share": 0.35, "labour_share": 0.6},
        ),
        TextbookModel(
            underwater_light,
            "limnology",
            {"depth": (0, 10), "chlorophyll": (0, 20)},
            {"surface": 1500, "water": 0.15, "algae": 0.015},
        ),
        TextbookModel(
            predation,
            "ecology",
            {"prey": (0, 100), "predators": (0, 10)},
            {"attack": 0.4, "handling": 0.08, "interference": 0.3},
        ),
        TextbookModel(
            warm_growth,
            "microbiology",
            {"substrate": (0, 20), "celsius": (10, 35)},
            {"rate20": 0.6, "saturation": 3, "q10": 2},
        ),
    )
}
