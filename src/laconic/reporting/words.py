# ruff: noqa: E501 (sentences are kept on one line, with the punctuation of their language)
"""Every sentence of the report, in English and in French, side by side."""

from __future__ import annotations

import re
from typing import Any

from laconic.data.tables.spoken import LANGUAGES, Numbers, checked_language

__all__ = ["LANGUAGES", "Numbers", "clipped", "words"]

# key: (English, French); braces are filled in when the sentence is used
_WORDS: dict[str, tuple[str, str]] = {
    # header
    "skip": ("Skip to the numbers", "Aller aux chiffres"),
    "title": ("Decision report", "Rapport de décision"),
    "measured_held_out": (
        "Every number is measured on {test} rows that the fit did not see ({train} rows were used for the fit).",
        "Chaque chiffre est mesuré sur {test} lignes que l'apprentissage n'a pas vues ({train} lignes ont servi à l'apprentissage).",
    ),
    "measured_given": (
        "Every number is measured on the {test} rows handed to the report; they are honest if the fit has not seen these rows.",
        "Chaque chiffre est mesuré sur les {test} lignes confiées au rapport ; ils sont honnêtes si l'apprentissage n'a pas vu ces lignes.",
    ),
    "at_prior": (
        "Costs are reweighted to the class mix where the model will be used: {mix}.",
        "Les coûts sont ramenés à la répartition des classes là où le modèle servira : {mix}.",
    ),
    "verdict_better": (
        "Deciding with this model costs {cost} per case, {percent} less than the best rule without a model{kept} ({rule}: {other}).",
        "Décider avec ce modèle coûte {cost} par cas, {percent} de moins que la meilleure règle sans modèle{kept} ({rule} : {other}).",
    ),
    "verdict_no_error": (
        "Deciding with this model cost nothing on these rows: at most {high} per case with 95 % confidence, and at least {percent} less than the best rule without a model{kept} ({rule}: {other}).",
        "Décider avec ce modèle n'a rien coûté sur ces lignes : au plus {high} par cas avec une confiance de 95 %, et au moins {percent} de moins que la meilleure règle sans modèle{kept} ({rule} : {other}).",
    ),
    "verdict_worse": (
        "Deciding with this model costs {cost} per case; a rule without a model{kept} ({rule}) costs {other}: the model does not pay here.",
        "Décider avec ce modèle coûte {cost} par cas ; une règle sans modèle{kept} ({rule}) coûte {other} : le modèle ne se justifie pas ici.",
    ),
    "verdict_unclear": (
        "Deciding with this model costs {cost} per case; the best rule without a model{kept} ({rule}) costs {other}: on these rows the difference is within chance.",
        "Décider avec ce modèle coûte {cost} par cas ; la meilleure règle sans modèle{kept} ({rule}) coûte {other} : sur ces lignes, l'écart peut être dû au hasard.",
    ),
    "verdict_free": (
        "Deciding with this model costs {cost} per case; a rule without a model{kept} ({rule}) costs {other}.",
        "Décider avec ce modèle coûte {cost} par cas ; une règle sans modèle{kept} ({rule}) coûte {other}.",
    ),
    "that_keeps": (" that keeps the promises", " qui tient les promesses"),
    "keeps_none": (" that breaks the promises", " qui ne tient pas les promesses"),
    "champion_even": (
        "Your model {name} costs {other}. This one costs between {less} less and {more} more: within chance.",
        "Votre modèle {name} coûte {other}. Celui-ci coûte entre {less} de moins et {more} de plus : cela peut être dû au hasard.",
    ),
    "champion_better": (
        "Your model {name} costs {other}: this one costs {percent} less ({low} to {high}).",
        "Votre modèle {name} coûte {other} : celui-ci coûte {percent} de moins ({low} à {high}).",
    ),
    "champion_worse": (
        "Your model {name} costs {other}: this one costs {percent} more ({low} to {high}), keep yours.",
        "Votre modèle {name} coûte {other} : celui-ci coûte {percent} de plus ({low} à {high}), gardez le vôtre.",
    ),
    "beside_even": (
        "For comparison, {name} costs {other}. This model costs between {less} less and {more} more: within chance.",
        "À titre de comparaison : {name}, {other}. Ce modèle coûte entre {less} de moins et {more} de plus : cela peut être dû au hasard.",
    ),
    "beside_better": (
        "For comparison, {name} costs {other}: this model costs {percent} less.",
        "À titre de comparaison : {name}, {other}. Ce modèle coûte {percent} de moins.",
    ),
    "beside_worse": (
        "For comparison, {name} costs {other}: this model costs {percent} more, choose the other one.",
        "À titre de comparaison : {name}, {other}. Ce modèle coûte {percent} de plus, préférez l'autre.",
    ),
    "beside_free": (
        "For comparison, {name}, which promises nothing, costs {other}: this model costs {percent} more.",
        "À titre de comparaison : {name}, qui ne promet rien, {other}. Ce modèle coûte {percent} de plus.",
    ),
    "champion_free": (
        "Your model {name} costs {other}: this one costs {percent} more ({low} to {high}), with promises that yours was not asked for.",
        "Votre modèle {name} coûte {other} : celui-ci coûte {percent} de plus ({low} à {high}), avec des promesses non demandées au vôtre.",
    ),
    "verdict_money": (
        "At {cases} cases {per} that is {money} {per}, {saved} less than {rule}.",
        "À raison de {cases} cas {per}, cela fait {money} {per}, {saved} de moins que {rule}.",
    ),
    "verdict_money_only": (
        "At {cases} cases {per} that is {money} {per}.",
        "À raison de {cases} cas {per}, cela fait {money} {per}.",
    ),
    "price_some": (
        "Price of a page that can be read: all the candidates together, which nobody can read, would cost about {value} less per case ({low} to {high}).",
        "Prix d'une page lisible : tous les candidats ensemble, que personne ne peut lire, coûteraient environ {value} de moins par cas ({low} à {high}).",
    ),
    "price_none": (
        "Price of a page that can be read: nothing that could be measured. All the candidates together are not clearly cheaper ({less} more to {high} less per case).",
        "Prix d'une page lisible : rien de mesurable. Tous les candidats ensemble ne sont pas nettement moins chers ({less} de plus à {high} de moins par cas).",
    ),
    "per_thousand": ("per 1,000 cases", "pour 1 000 cas"),
    "per_day": ("a day", "par jour"),
    "per_week": ("a week", "par semaine"),
    "per_month": ("a month", "par mois"),
    "per_quarter": ("a quarter", "par trimestre"),
    "per_year": ("a year", "par an"),
    "always": ("always “{name}”", "toujours « {name} »"),
    "likeliest": (
        "the likeliest class by this model",
        "la classe la plus probable selon ce modèle",
    ),
    "plain": ("plain logistic regression", "régression logistique simple"),
    "this_model": ("this model", "ce modèle"),
    # cards
    "card_cost": ("expected cost per case", "coût moyen par cas"),
    "card_threshold": ("decide “{name}” from probability", "décider « {name} » dès la probabilité"),
    "card_money": ("expected cost {per}", "coût moyen {per}"),
    "card_caught": ("share of “{name}” caught", "part des « {name} » repérés"),
    "card_precision": ("of those decided “{name}”, right", "parmi les décidés « {name} », justes"),
    "card_right": ("decided right", "bien décidés"),
    "card_decided": ("decided “{name}” {per}", "décidés « {name} » {per}"),
    "card_abstained": ("left to a person {per}", "laissés à une personne {per}"),
    "card_auc": ("area under the ROC curve", "aire sous la courbe ROC"),
    "card_log_loss": ("log loss", "perte logarithmique"),
    "card_columns": ("variables read by the model", "variables lues par le modèle"),
    "card_rules": ("rules that vote", "règles qui votent"),
    "card_profiles": ("profiles", "profils"),
    "between": ("{low} to {high} (95 %)", "{low} à {high} (95 %)"),
    # sections
    "nav": ("Sections", "Sections"),
    "h_capacity": (
        "If only some cases can be looked at",
        "Si l'on ne peut examiner que certains cas",
    ),
    "h_specialists": ("For specialists", "Pour spécialistes"),
    "specialists_lead": (
        "How far the probabilities can be believed, what is proven, the candidates that were compared, and where the rows lie.",
        "Jusqu'où croire les probabilités, ce qui est prouvé, les candidats comparés, et la place des lignes.",
    ),
    "family_lead": (
        "The model is called {family} in Python.",
        "Le modèle se nomme {family} en Python.",
    ),
    "capacity_lead": (
        "The cases that look most like “{name}” come first. Choose how many can be looked at: the curve says how many of the “{name}” are among them, counted on the measured rows.",
        "Les cas qui ressemblent le plus à « {name} » viennent d'abord. Choisissez combien peuvent être examinés : la courbe dit combien des « {name} » s'y trouvent, comptés sur les lignes mesurées.",
    ),
    "s_capacity": ("Look at", "Examiner"),
    "s_capacity_unit": ("{count} of {all} cases", "{count} cas sur {all}"),
    "s_capacity_per": ("{count} of {all} cases {per}", "{count} cas sur {all} {per}"),
    "o_caught": ("share of “{name}” caught", "part des « {name} » repérés"),
    "o_right": ("of those looked at, “{name}”", "parmi les cas examinés, « {name} »"),
    "o_found": ("“{name}” found {per}", "« {name} » trouvés {per}"),
    "o_lift": ("times better than at random", "fois mieux qu'au hasard"),
    "c_capacity": ("Caught against looked at", "Repérés selon le nombre examiné"),
    "c_capacity_x": ("share of the cases looked at", "part des cas examinés"),
    "at_random": ("at random", "au hasard"),
    "own_rule": ("the model's own decisions", "les décisions du modèle"),
    "s_errors": (
        "Errors on “{name}” cost, times today",
        "Les erreurs sur « {name} » coûtent, fois le coût actuel",
    ),
    "s_times": ("\u00d7 {value}", "\u00d7 {value}"),
    "s_which": ("Class whose errors change their cost", "Classe dont les erreurs changent de coût"),
    "o_money": ("cost {per}", "coût {per}"),
    "h_play": ("Costs and class mix", "Coûts et répartition des classes"),
    "h_trust": ("Can the probabilities be believed?", "Peut-on croire les probabilités ?"),
    "h_card": ("The card, to print", "La carte, à imprimer"),
    "card_lead": (
        "Add the points of every line that applies; what is on no line counts 0. The total says "
        "the risk of {name}; the last columns are what was seen on rows that the fit did not see.",
        "Additionnez les points de chaque ligne qui s'applique ; ce qui n'est sur aucune ligne "
        "compte 0. Le total donne le risque de {name} ; les dernières colonnes montrent ce qui a "
        "été vu sur des lignes que l'apprentissage n'a pas vues.",
    ),
    "card_from": (
        "From a total of {total} on the decision is “{name}”.",
        "À partir d'un total de {total} la décision est « {name} ».",
    ),
    "card_doubling": (
        "Every {points} points double the odds of “{name}”.",
        "Chaque tranche de {points} points double la cote de « {name} ».",
    ),
    "card_any": ("any value", "toute valeur"),
    "card_column": ("Column", "Colonne"),
    "card_part": ("Value", "Valeur"),
    "card_points": ("Points", "Points"),
    "card_own": ("Own", "Obtenus"),
    "card_total": ("Total", "Total"),
    "card_risk": ("Risk of {name}", "Risque de {name}"),
    "card_rows": ("Rows", "Lignes"),
    "card_hits": ("Cases", "Cas"),
    "card_interval": ("95% interval of the rate", "Intervalle à 95 % du taux"),
    "h_model": ("The model", "Le modèle"),
    "h_what_if": ("What if", "Et si"),
    "h_proofs": (
        "What is certain, and what it assumes",
        "Ce qui est certain, et sous quelles hypothèses",
    ),
    "h_size": ("Size against cost", "Taille et coût"),
    "h_map": ("Map of the rows", "Carte des lignes"),
    "h_counts": ("Truth and decision", "Vérité et décision"),
    "no_script": (
        "The sliders and drawings need JavaScript, which runs in this page only; the tables below do not.",
        "Les curseurs et dessins demandent JavaScript, exécuté dans cette page seulement ; les tableaux ci-dessous s'en passent.",
    ),
    # sliders
    "play_lead": (
        "Move a slider: the rule of least expected cost, its decisions and what they cost follow at once. The numbers are counts of the measured rows, not estimates between them.",
        "Déplacez un curseur : la règle de moindre coût, ses décisions et leur prix suivent aussitôt. Les chiffres sont des comptages sur les lignes mesurées, sans interpolation.",
    ),
    "play_mean": (
        "What errors cost differs from case to case: here they cost the mean of their class, while the model's own decisions weigh each case and cost {cost}.",
        "Le coût des erreurs varie d'un cas à l'autre : ici elles coûtent la moyenne de leur classe, alors que les décisions du modèle pèsent chaque cas et coûtent {cost}.",
    ),
    "play_abstains": (
        "The model may also abstain; here it is made to decide every case.",
        "Le modèle peut aussi s'abstenir ; ici il doit trancher chaque cas.",
    ),
    "s_ratio": ("A missed “{name}” costs as much as", "Un « {name} » manqué coûte autant que"),
    "s_ratio_unit": ("{value} false alarms", "{value} fausses alertes"),
    "s_prior": ("Share of “{name}” among cases", "Part de « {name} » parmi les cas"),
    "s_share_of": ("Share of “{name}”", "Part de « {name} »"),
    "s_which_share": ("Class whose share changes", "Classe dont la part change"),
    "reset": ("Back to the model's own setting", "Revenir au réglage du modèle"),
    "o_threshold": ("decide “{name}” from probability", "décider « {name} » dès la probabilité"),
    "o_decided": ("decided “{name}” {per}", "décidés « {name} » {per}"),
    "o_hits": ("of them right", "dont justes"),
    "o_false": ("false alarms {per}", "fausses alertes {per}"),
    "o_missed": ("missed {per}", "manqués {per}"),
    "o_cost": ("expected cost per case", "coût moyen par cas"),
    "h_scenarios": ("The same model under other costs", "Le même modèle sous d'autres coûts"),
    "t_scenario": ("scenario", "scénario"),
    "t_threshold": ("threshold", "seuil"),
    "t_positive": ("decided {name}", "décidés {name}"),
    "t_usual": ("cost of the usual decisions", "coût des décisions habituelles"),
    "t_rule": ("rule", "règle"),
    "t_cost": ("cost per case", "coût par cas"),
    "t_against": ("against this model", "par rapport au modèle"),
    "ceiling": ("ceiling whatever the mix", "plafond quelle que soit la répartition"),
    "ceiling_note": (
        "With its cut moved to a probability of {cut}, this model never costs more than {cost} per case, whatever the class mix: that is the ceiling, measured on these rows.",
        "En plaçant le seuil à une probabilité de {cut}, ce modèle ne coûte jamais plus de {cost} par cas, quelle que soit la répartition : c'est le plafond, mesuré sur ces lignes.",
    ),
    "safe_note": (
        "Today's threshold, left as it is, stays under the ceiling while the share of “{name}” is between {low} and {high}.",
        "Le seuil actuel, inchangé, reste sous le plafond tant que la part de « {name} » est entre {low} et {high}.",
    ),
    "safe_none": (
        "At these costs, today's threshold is never under the ceiling.",
        "À ces coûts, le seuil actuel n'est jamais sous le plafond.",
    ),
    "c_threshold": ("Cost against the threshold", "Coût selon le seuil"),
    "c_threshold_x": ("threshold on the probability", "seuil de probabilité"),
    "c_prior": ("Cost against the class mix", "Coût selon la répartition"),
    "c_prior_x": ("share of “{name}”", "part de « {name} »"),
    "adapts": ("this model, following the mix", "ce modèle, suivant la répartition"),
    "stays": ("today's threshold, left as it is", "seuil actuel, inchangé"),
    "mix_lead": (
        "Move how often each class comes, and how much the errors on a class cost; decisions and costs follow at once, counted on the measured rows.",
        "Déplacez la fréquence de chaque classe, et le coût des erreurs sur une classe ; décisions et coûts suivent aussitôt, comptés sur les lignes mesurées.",
    ),
    "t_class": ("class", "classe"),
    "t_share": ("share", "part"),
    "t_risk": ("cost within the class", "coût dans la classe"),
    "t_decided": ("decided {per}", "décidés {per}"),
    "t_worst": ("worst class", "pire classe"),
    "abstained": ("left to a person", "laissé à une personne"),
    # reliability
    "trust_lead": (
        "Each point is a group of rows: predicted probability across, share observed up; bars are 95 % intervals. On the diagonal, predictions come true.",
        "Chaque point est un groupe de lignes : probabilité prédite en abscisse, part observée en ordonnée ; les barres sont des intervalles à 95 %. Sur la diagonale, les prédictions se réalisent.",
    ),
    "trust_zone": (
        "Where the decision is taken: {rows} rows have a probability between {low} and {high}; the threshold is {cut}.",
        "Là où se prend la décision : {rows} lignes ont une probabilité entre {low} et {high} ; le seuil est {cut}.",
    ),
    "trust_zone_one": (
        "Where the decision is taken: one row has a probability between {low} and {high}; the threshold is {cut}.",
        "Là où se prend la décision : une ligne a une probabilité entre {low} et {high} ; le seuil est {cut}.",
    ),
    "trust_mix": (
        "Probabilities are those of the model before any correction for another class mix.",
        "Les probabilités sont celles du modèle avant toute correction de répartition.",
    ),
    "trust_none": (
        "This rule decides without class probabilities, so there is nothing to check here.",
        "Cette règle décide sans probabilités de classe : rien à vérifier ici.",
    ),
    "trust_all": ("all rows", "toutes les lignes"),
    "trust_near": ("near the threshold", "près du seuil"),
    "x_predicted": ("predicted probability", "probabilité prédite"),
    "y_observed": ("observed share", "part observée"),
    "choose_class": ("Class", "Classe"),
    # model
    "model_additive": (
        "{family}: a sum of {terms} parts that read {columns} variables. Each drawing is what one part adds to the score; they are ordered by how much they move it. Shares and class rates come from {rows} measured rows.",
        "{family} : une somme de {terms} parts qui lisent {columns} variables. Chaque dessin est ce qu'une part ajoute au score ; elles sont rangées par leur effet. Parts de lignes et taux viennent de {rows} lignes mesurées.",
    ),
    "model_large": (
        "The model is too large to be computed inside a page of this size; its parts are listed by how much they move the score.",
        "Le modèle est trop grand pour être calculé dans cette page ; ses parts sont rangées par leur effet sur le score.",
    ),
    "model_rules": (
        "{family}: {rules} rules vote, each with its weight.",
        "{family} : {rules} règles votent, chacune avec son poids.",
    ),
    "model_profiles": (
        "{family}: rows fall into {profiles} profiles, and each profile has its decision. The heaviest are listed.",
        "{family} : les lignes tombent dans {profiles} profils, et chaque profil a sa décision. Les plus lourds sont listés.",
    ),
    "model_other": (
        "{family}: this model is not a sum of readable parts, so there is nothing to draw. Its decisions are judged as any other's.",
        "{family} : ce modèle n'est pas une somme de parts lisibles, il n'y a donc rien à dessiner. Ses décisions sont jugées comme les autres.",
    ),
    "more_terms": ("Show {count} more variables", "Montrer {count} autres variables"),
    "for_class": ("Contribution to class", "Contribution à la classe"),
    "effect": ("effect {value}", "effet {value}"),
    "x_adds": ("adds to the score", "ajoute au score"),
    "t_part": ("part", "partie"),
    "t_rows": ("rows", "lignes"),
    "t_rate": ("share of “{name}”", "part de « {name} »"),
    "t_weight": ("weight", "poids"),
    "t_adds": ("adds", "ajoute"),
    "t_says": ("rule", "règle"),
    "t_profile": ("profile", "profil"),
    "t_decides": ("decision", "décision"),
    "table_of": ("Table of the parts", "Tableau des parties"),
    "missing": ("missing", "manquant"),
    "other": ("any other", "tout autre"),
    "other_texts": ("other", "autre"),
    "yes": ("yes", "oui"),
    "no": ("no", "non"),
    "intercept": ("start", "départ"),
    # what if
    "what_if_lead": (
        "Describe a case; the score, the probability and the decision are computed here, with the costs and class mix chosen above. Empty means missing.",
        "Décrivez un cas ; score, probabilité et décision sont calculés ici, avec les coûts et la répartition choisis plus haut. Vide signifie manquant.",
    ),
    "what_if_mean": (
        "Its errors cost the means.",
        "Ses erreurs y coûtent les moyennes.",
    ),
    "what_if_none": (
        "A case cannot be computed in the page for this kind of model.",
        "Un cas ne peut pas être calculé dans la page pour ce type de modèle.",
    ),
    "w_decision": ("decision", "décision"),
    "w_probability": ("probability of “{name}”", "probabilité de « {name} »"),
    "w_score": ("score:", "score :"),
    "w_reasons": (
        "Reasons: what moved the score most",
        "Raisons : ce qui a le plus déplacé le score",
    ),
    "w_bad": ("“{name}” is not a number", "« {name} » n'est pas un nombre"),
    "w_more": ("Show all {count} variables", "Montrer les {count} variables"),
    # certificates
    "assumes": ("Assumes", "Suppose"),
    "measured_t": ("Measured cost", "Coût mesuré"),
    "measured_s": (
        "On {rows} rows the decisions cost {value} per case; with 95 % confidence the long-run cost is between {low} and {high}.",
        "Sur {rows} lignes, les décisions coûtent {value} par cas ; à 95 %, le coût à long terme est entre {low} et {high}.",
    ),
    "measured_a": (
        "the measured rows are like the cases to come, independent of each other and of the fit; the class mix is the one shown.",
        "les lignes mesurées ressemblent aux cas à venir, sont indépendantes entre elles et de l'apprentissage ; la répartition est celle affichée.",
    ),
    "promise_t": ("Guaranteed", "Garanti"),
    "promise_s": (
        "With {confidence} confidence, {what} is {sense} {level}.",
        "À {confidence} de confiance, {what} est {sense} {level}.",
    ),
    "promise_seen": (
        "The {rows} rows that it rests on, seen by neither the fit nor the choice, show {measured}.",
        "Les {rows} lignes sur lesquelles elle repose, inconnues de l'apprentissage et du choix, montrent {measured}.",
    ),
    "at_least": ("at least", "d'au moins"),
    "at_most": ("at most", "d'au plus"),
    "promise_recall": ("the share of “{name}” that is found", "la part de « {name} » retrouvée"),
    "promise_false_alarms": (
        "the share of other cases taken for “{name}”",
        "la part des autres cas pris pour « {name} »",
    ),
    "promise_alarms": ("the share of cases decided “{name}”", "la part des cas décidés « {name} »"),
    "promise_precision": (
        "the share of decisions “{name}” that are right",
        "la part de décisions « {name} » justes",
    ),
    "promise_cost": ("the cost per case", "le coût par cas"),
    "promise_error": (
        "the share of errors among the decisions taken",
        "la part d'erreurs parmi les décisions prises",
    ),
    "promise_abstentions": (
        "the share of cases without a decision",
        "la part de cas sans décision",
    ),
    "promise_a": (
        "new cases are drawn like these rows, independently of each other;",
        "les nouveaux cas sont tirés comme ces lignes, indépendamment les uns des autres ;",
    ),
    "promise_mix_free": (
        "the shares of the classes may differ.",
        "la répartition des classes peut différer.",
    ),
    "promise_mix_rows": (
        "with the same shares of the classes.",
        "avec la même répartition des classes.",
    ),
    "promise_mix_box": (
        "with a share of the positive class between {low} and {high}.",
        "avec une part de la classe positive entre {low} et {high}.",
    ),
    "page_t": ("How well the page learned", "Ce que la page a appris"),
    "page_s": (
        "A longer sum of terms taught this page. What the page strays from it, plus a small penalty on moving its numbers, is {value} nats per row; no other numbers in its places that keep the directions of its curves have less by more than {gap}.",
        "Une somme plus longue de termes a instruit cette page. Son écart à celle-ci, plus une petite pénalité sur le déplacement de ses nombres, vaut {value} nats par ligne ; aucun autre jeu de nombres aux mêmes places, gardant le sens des courbes, ne le réduit de plus de {gap}.",
    ),
    "below": ("less than {value}", "moins de {value}"),
    "page_a": (
        "nothing about the data: it is a proof of convex optimisation on the rows that the page was drawn on; how good the longer sum is, it does not say.",
        "rien sur les données : c'est une preuve d'optimisation convexe sur les lignes dont la page est tirée ; elle ne dit pas ce que vaut la somme plus longue.",
    ),
    "gap_t": ("Distance to the best of its family", "Distance au meilleur de sa famille"),
    "gap_s": (
        "No model of this family has a training criterion more than {value} below this one{of}.",
        "Aucun modèle de cette famille n'a un critère d'apprentissage plus bas de plus de {value}{of}.",
    ),
    "gap_of": (" (its value is {objective})", " (il vaut {objective})"),
    "gap_a": (
        "nothing about the data: it is a proof by duality on the training rows, and it says nothing of new rows.",
        "rien sur les données : c'est une preuve par dualité sur les lignes d'apprentissage, qui ne dit rien de nouvelles lignes.",
    ),
    "steps_t": ("No distance to the best is known", "Distance au meilleur inconnue"),
    "steps_s": (
        "Boosted steps are part of this model: they minimise no criterion, and nothing proves how far they are from the best.",
        "Des pas de boosting font partie de ce modèle : ils ne minimisent aucun critère, et rien ne prouve leur distance au meilleur.",
    ),
    "steps_a": ("nothing.", "rien."),
    "edited_t": ("Edited by hand", "Modifié à la main"),
    "edited_s": (
        "Parts of the model were changed after the fit, so no distance to the best model is known.",
        "Des parties du modèle ont été changées après l'apprentissage : la distance au meilleur modèle est inconnue.",
    ),
    "edited_a": ("nothing.", "rien."),
    "pac_bayes_t": (
        "Bound on the error rate (PAC-Bayes)",
        "Borne sur le taux d'erreur (PAC-Bayes)",
    ),
    "pac_bayes_s": (
        "With 95 % confidence, the vote errs on at most {value} of new rows ({name}).",
        "À 95 %, le vote se trompe sur au plus {value} des nouvelles lignes ({name}).",
    ),
    "pac_bayes_each": (
        "With 95 % confidence for each class against the rest, its vote errs on at most {value} of new rows ({name}).",
        "À 95 % pour chaque classe contre le reste, son vote se trompe sur au plus {value} des nouvelles lignes ({name}).",
    ),
    "pac_bayes_a": (
        "rows drawn independently from one source, all errors counted equal. {assumption}",
        "lignes tirées indépendamment d'une même source, toutes les erreurs comptant autant. {assumption}",
    ),
    "c_bound_t": ("C-bound", "C-borne"),
    "c_bound_s": (
        "From the mean and spread of its margins, the vote errs on at most {value} of the training rows.",
        "D'après la moyenne et la dispersion de ses marges, le vote se trompe sur au plus {value} des lignes d'apprentissage.",
    ),
    "c_bound_a": (
        "nothing for the training rows; for new rows it is a guide, not a guarantee.",
        "rien pour les lignes d'apprentissage ; pour de nouvelles lignes c'est un repère, pas une garantie.",
    ),
    "minimax_t": ("Worst class risk", "Pire risque de classe"),
    "minimax_s": (
        "On these profiles no rule has a worst class risk below {value}; this one is within {gap} of it. The least favourable mix is {prior}.",
        "Sur ces profils, aucune règle n'a un pire risque de classe sous {value} ; celle-ci en est à {gap} près. La répartition la moins favorable est {prior}.",
    ),
    "minimax_a": (
        "the shares of the profiles within each class are those learned; the class mix may be anything allowed.",
        "les parts des profils dans chaque classe sont celles apprises ; la répartition des classes est libre.",
    ),
    "held_out_risks_t": (
        "Class risks on rows held out",
        "Risques de classe sur lignes tenues à l'écart",
    ),
    "held_out_risks_s": (
        "On training rows held out in turn, the class risks are {risks}; the worst is {value}.",
        "Sur des lignes d'apprentissage tenues à l'écart à tour de rôle, les risques de classe sont {risks} ; le pire est {value}.",
    ),
    "held_out_risks_a": (
        "rows independent of each other.",
        "lignes indépendantes entre elles.",
    ),
    "compression_t": ("Compression", "Compression"),
    "compression_s": (
        "Given the model, the classes of the training rows take {value} fewer bits than with the class shares alone.",
        "Connaissant le modèle, les classes des lignes d'apprentissage demandent {value} de bits en moins qu'avec les seules parts des classes.",
    ),
    "compression_a": (
        "nothing for the training rows; near zero means that the variables say little.",
        "rien pour les lignes d'apprentissage ; proche de zéro, les variables disent peu.",
    ),
    # candidates
    "size_lead": (
        "All the candidates that were compared. Lower is cheaper, further left is shorter to read; bars are one standard error. The chosen one is marked.",
        "Tous les candidats comparés. Plus bas est moins cher, plus à gauche est plus court à lire ; les barres sont une erreur type. Le modèle choisi est marqué.",
    ),
    "t_candidate": ("candidate", "candidat"),
    "t_size": ("size", "taille"),
    "t_log_loss": ("log loss", "perte log."),
    "t_auc": ("AUC", "AUC"),
    "t_seconds": ("fit, s", "apprentissage, s"),
    "t_note": ("remark", "remarque"),
    "see_bound": ("", "Hypothèses exactes : voir la borne « {name} »."),
    "t_worst_risk": ("worst class risk", "pire risque de classe"),
    "t_certificate": ("certificate", "certificat"),
    "chosen": ("chosen", "choisi"),
    "y_cost": ("expected cost per case", "coût moyen par cas"),
    "x_size": ("size of the model", "taille du modèle"),
    # map
    "map_lead": (
        "{rows} measured rows, drawn at random, on the two directions in which {columns} columns vary most ({variance} of their variance).",
        "{rows} lignes mesurées, tirées au hasard, sur les deux directions où {columns} colonnes varient le plus ({variance} de leur variance).",
    ),
    "map_lead_parts": (
        "{rows} measured rows, drawn at random, as the model sees them: on the two directions in which its {columns} parts vary most ({variance} of their variance).",
        "{rows} lignes mesurées, tirées au hasard, telles que le modèle les voit : sur les deux directions où ses {columns} parts varient le plus ({variance} de leur variance).",
    ),
    "map_gray": (
        "Ringed rows lie in the gray zone, where the probability is near the threshold.",
        "Les lignes cerclées sont dans la zone grise, où la probabilité est proche du seuil.",
    ),
    "map_gray_many": (
        "Ringed rows lie in the gray zone, where no class reaches one half.",
        "Les lignes cerclées sont dans la zone grise, où aucune classe n'atteint un demi.",
    ),
    "score_of": (
        "The score is for “{name}”: what adds to it speaks for “{name}”, what subtracts speaks against.",
        "Le score est celui de « {name} » : ce qui s'y ajoute parle pour « {name} », ce qui s'en retranche parle contre.",
    ),
    "score_of_each": (
        "There is one score for each class; choose the class to see what adds to it.",
        "Il y a un score par classe ; choisissez la classe pour voir ce qui s'y ajoute.",
    ),
    "w_towards": (
        "Plus speaks for “{name}”, minus against.",
        "Plus parle pour « {name} », moins parle contre.",
    ),
    "map_none": ("There is no map: {why}.", "Pas de carte : {why}."),
    "map_edge": (
        "Rows far outside stand on the edge.",
        "Les lignes très éloignées sont posées sur le bord.",
    ),
    "map_discs": (
        "Rows at one place are spread into a disc.",
        "Les lignes d'un même point sont étalées en disque.",
    ),
    "map_too_few": (
        "there are fewer than two rows, or two columns that vary",
        "il y a moins de deux lignes, ou de deux colonnes qui varient",
    ),
    "map_axis": (
        "component {number} ({share} of the variance)",
        "composante {number} ({share} de la variance)",
    ),
    "gray": ("gray zone", "zone grise"),
    "map_arrows": (
        "What weighs most on this map: {names}.",
        "Ce qui pèse le plus sur cette carte : {names}.",
    ),
    "wrong": ("decided otherwise", "décidé autrement"),
    # counts
    "truth_decision": ("truth \\ decision", "vérité \\ décision"),
    "recall": ("decided right", "bien décidés"),
    "taken_for": ("most often taken for", "le plus souvent prise pour"),
    "made_with": (
        "Made with Laconic {version}. One file, no network.",
        "Produit par Laconic {version}. Un fichier, sans réseau.",
    ),
}


_NARROW = re.compile(r"(?<=\d) (?=%)|(?<=«) | (?=[»:;?!])")


def words(language: str) -> dict[str, str]:
    """All the sentences of a language.

    >>> words("fr")["h_model"]
    'Le modèle'
    """
    place = LANGUAGES.index(checked_language(language))
    # a number is not cut from its percent sign, nor French punctuation from its word
    return {key: _NARROW.sub("\u00a0", texts[place]) for key, texts in _WORDS.items()}


def clipped(text: Any, most: int = 80) -> str:
    """A name as it is shown: one line, not endless."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
